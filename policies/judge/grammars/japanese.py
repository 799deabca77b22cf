"""Who did what in Japanese: the topic is marked, the verb comes last, the rest may be unsaid."""

import re

from policies.judge.grammars.grammar import NEVER, Grammar
from policies.judge.numbers import values
from policies.judge.reading import HAN, words

_HAN_RUN = re.compile(f"[{HAN}]+")
_KATAKANA_RUN = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_COMMON = frozenset(
    "人私僕俺彼君何時日年今前後中上下一二三四五六七八九十事方気言思行来見出入会話聞手間度回月週朝夜本当的同"
)
_MANNERS = frozenset(
    "自分 今日 明日 昨日 一緒 時間 最近 本当 写真 気持 友達 家族 先週 来週 今度 毎日 今年 去年"
    " 来年 毎週 先月"
    " 来月 週末 大事 大切 大変 好き 嬉し 楽し 全部 全然 彼女 二人 今回 話題 紹介 説明 予定 一番"
    " 時々 普段 以前"
    " 場所 時期 何度 一度 参加 決定 最初 最後 素敵 応援 感謝 共有".split()
)
_TITLE = "(?:さん|くん|ちゃん|君|様|氏|先生|教授)?"
_TOPIC = rf"{_TITLE}(?:は|が|も)"


def _matters(text: str) -> set[str]:
    found = {word[:5] for word in words(text) if word.isascii() and len(word) >= 4}
    found |= {figure for figure in values(text) if len(figure) > 1}
    found |= {run[:6] for run in _KATAKANA_RUN.findall(text)}
    for run in _HAN_RUN.findall(text):
        if len(run) == 1:
            found.update(set(run) - _COMMON)
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return found - _MANNERS


JAPANESE = Grammar(
    lead=r"\W*(?:(?:(?!{name})[^、,;]){{1,30}}[、,;] ?)?",
    subject=(
        rf"(?:(?P<they>二人|ふたり|両者|彼ら)(?:は|が|も)"
        rf"|(?P<first>{{name}}){_TITLE}(?:(?:と|、|や)(?P<second>{{name}}){_TITLE})?(?:は|が|も"
        rf"|の))"
    ),
    joint=(
        rf"(?<=[、,;]){{apart}}(?=(?:一方|そして|また|その後)?、?(?:{{name}}){_TOPIC})"
        r"|(?<=[、,;])(?=(?:彼女?|二人|相手)(?:は|が|も))"
    ),
    further=NEVER,
    told_them=rf"^[、,]?(?:{{name}}){_TITLE}に(?:は|も)?[、,]?",
    answers=re.compile(
        "褒め|ほめ|尋ね|訊|聞い|聞き|聞く|質問|驚|同意|賛成|勧め|薦め|提案|喜|励ま|感心|羨"
        "|うらや|応援|助言|忠告|申し出|約束"
        "|祝|慰め|答え|尋|知り|知った|感謝|礼を|断[っりる]|拒|受け入れ|頼|求め|期待|願|信じ"
        "|考え|思っ|思う|思い|興味|共感|理解|引き受け|注意|心配"
        "|感動|笑|べき|なければ|ほしい|欲しが|楽しみ|手伝|促|誘|称賛|つもり|ことにし|からか"
        "|冗談|ため息|微笑"
        "|警告|説得|疑|批判|謝|安心|ほっと|信じられ|呆れ|憤|怒|残念|祈|惜し|同情|ねぎら|絶賛|憧れ"
    ),
    together=re.compile(
        "話[しをがに]|語り合|語っ|相談|計画|約束|再会|会っ|出会|楽し|思い出|決め|予定|互い|共有"
        "|一緒"
        "|交換|盛り上|検討|議論|それぞれ|過ごし|について"
    ),
    theirs=re.compile("(?:自分たち|彼女?ら|彼女たち|ふたり|二人)の"),
    addressed=re.compile(
        r"\?|(?:か|ください|なさい|ように|[しいみき]て|[つや]めて|ないで|なよ|ましょう|よう"
        r"|といい(?:よ"
        r"|ね)?|ほうがいい(?:よ|ね)?|ばいい(?:よ|ね)?)[。.]?$|あなた|きみ|君|お前|そっち|そちら"
    ),
    named=re.escape,
    matters=_matters,
    links=("、", "さん、"),
)
