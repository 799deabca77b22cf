"""One scene in six languages: a user tells of themselves, a character lies and thinks the truth."""

from dataclasses import dataclass

from policies.values import Line


def span(*rows: tuple[str, str, str]) -> list[Line]:
    """Lines from (role, speaker, text), one message each."""
    return [Line(name, text, role=role, at=at) for at, (role, name, text) in enumerate(rows)]


@dataclass(frozen=True)
class Scene:
    """facts: the user's own, each told in line 0; lies: what the character says, as if it were the
    user's fact; claim: (who, to, said, truth), from line 1; thread: of line 3; quote: of line 1."""

    lines: list[Line]
    facts: tuple[str, ...]
    lies: tuple[str, ...]
    claim: tuple[str, str, str, str]
    thread: str
    quote: str


SCENES = {
    "en": Scene(
        span(
            ("user", "User", "I live in Lisbon since May 2019 and my sister Beatriz sings there."),
            (
                "assistant",
                "Mira",
                '*smiles* "I was born in Paris, I am a doctor." (I lie: I am a thief from Madrid.)',
            ),
            ("user", "User", "A doctor! Were you born in Paris? You live in a castle, Mira."),
            ("assistant", "Mira", '"Find the silver key before Friday," she whispers.'),
        ),
        ("The user has lived in Lisbon since May 2019.", "The user's sister Beatriz sings."),
        ("The user was born in Paris.", "The user is a doctor.", "The user lives in a castle."),
        ("Mira", "User", "she was born in Paris and is a doctor", "she is a thief from Madrid"),
        "Find the silver key before Friday.",
        "I was born in Paris",
    ),
    "es": Scene(
        span(
            (
                "user",
                "Usuario",
                "Vivo en Lisboa desde mayo de 2019 y mi hermana Beatriz canta allí.",
            ),
            (
                "assistant",
                "Mira",
                "Nací en París y soy médica. (Miento: soy una ladrona de Madrid.)",
            ),
            ("user", "Usuario", "¡Médica! ¿Naciste en París? Tú vives en un castillo, Mira."),
            ("assistant", "Mira", "Busca la llave de plata antes del viernes."),
        ),
        ("El usuario vive en Lisboa desde mayo de 2019.", "Su hermana Beatriz canta."),
        ("El usuario nació en París.", "El usuario es médico.", "El usuario vive en un castillo."),
        ("Mira", "Usuario", "nació en París y es médica", "es una ladrona de Madrid"),
        "Hay que buscar la llave de plata antes del viernes.",
        "Nací en París",
    ),
    "ru": Scene(
        span(
            (
                "user",
                "Пользователь",
                "Я живу в Лиссабоне с мая 2019 года, моя сестра Беатрис там поёт.",
            ),
            ("assistant", "Мира", "Я родилась в Париже, я врач. (Я лгу: я воровка из Мадрида.)"),
            ("user", "Пользователь", "Врач! Ты правда родилась в Париже? Ты живёшь в замке."),
            ("assistant", "Мира", "Найди серебряный ключ до пятницы."),
        ),
        ("Пользователь живёт в Лиссабоне с мая 2019 года.", "Сестра пользователя — Беатрис."),
        ("Пользователь родился в Париже.", "Пользователь — врач.", "Пользователь живёт в замке."),
        ("Мира", "Пользователь", "она родилась в Париже и врач", "она воровка из Мадрида"),
        "Найти серебряный ключ до пятницы.",
        "Я родилась в Париже, я врач.",
    ),
    "ja": Scene(
        span(
            (
                "user",
                "ユーザー",
                "2019年5月からリスボンに住んでいます。妹のベアトリスは合唱団で歌っています。",
            ),
            ("assistant", "ミラ", "「パリで生まれた医者です」（本当はマドリードの泥棒だ）"),
            (
                "user",
                "ユーザー",
                "医者なんですね！パリで生まれたんですか？あなたは城に住んでいます。",
            ),
            ("assistant", "ミラ", "金曜日までに銀の鍵を見つけて。"),
        ),
        ("ユーザーは2019年5月からリスボンに住んでいる。", "妹のベアトリスは合唱団で歌っている。"),
        ("ユーザーはパリで生まれた。", "ユーザーは医者である。", "ユーザーは城に住んでいる。"),
        ("ミラ", "ユーザー", "パリで生まれた医者だ", "マドリードの泥棒である"),
        "金曜日までに銀の鍵を見つける。",
        "パリで生まれた医者です",
    ),
    "zh": Scene(
        span(
            ("user", "用户", "我从2019年5月起住在里斯本，我妹妹碧翠丝在合唱团唱歌。"),
            ("assistant", "米拉", "“我出生在巴黎，是个医生。”（其实我是马德里来的小偷。）"),
            ("user", "用户", "医生！你真的出生在巴黎吗？你住在城堡里。"),
            ("assistant", "米拉", "星期五之前找到那把银钥匙。"),
        ),
        ("用户从2019年5月起住在里斯本。", "用户的妹妹碧翠丝在合唱团唱歌。"),
        ("用户出生在巴黎。", "用户是医生。", "用户住在城堡里。"),
        ("米拉", "用户", "她出生在巴黎，是个医生", "她是马德里来的小偷"),
        "星期五之前要找到银钥匙。",
        "我出生在巴黎，是个医生",
    ),
    "ko": Scene(
        span(
            (
                "user",
                "사용자",
                "저는 2019년 5월부터 리스본에 살고 있고 여동생 베아트리스는 합창단에서 노래해요.",
            ),
            (
                "assistant",
                "미라",
                '"나는 파리에서 태어난 의사야." (사실은 마드리드에서 온 도둑이다.)',
            ),
            ("user", "사용자", "의사라니! 파리에서 태어났어요? 당신은 성에 살잖아요."),
            ("assistant", "미라", "금요일까지 은 열쇠를 찾아."),
        ),
        ("사용자는 2019년 5월부터 리스본에 살고 있다.", "여동생 베아트리스는 합창단에서 노래한다."),
        ("사용자는 파리에서 태어났다.", "사용자는 의사다.", "사용자는 성에 산다."),
        ("미라", "사용자", "파리에서 태어난 의사라고 했다", "마드리드에서 온 도둑이다"),
        "금요일까지 은 열쇠를 찾아야 한다.",
        "나는 파리에서 태어난 의사야.",
    ),
}
