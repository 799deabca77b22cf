"""Honest accounts: grounded, of about the asked length, and good enough for the judge."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.accounts import Task, mention, read_task, write_account
from gateway.prompts.summary import ask_chapter, ask_gist
from gateway.wire.json_text import dumps, loads
from policies.judge import judge_gist, judge_summary
from policies.standin import write_stand_in
from policies.values import Line

SPANS: dict[str, tuple[tuple[str, str], str]] = {
    "en": (
        ("Ada", "Ben"),
        "Yesterday I took twelve pictures on the beach at Whitby. The library meeting starts at "
        "nine and needs the signed contract. Mum sent cider from Somerset but nobody opened it. "
        "The new bicycle cost 340 pounds and its brakes squeal. We promised Clara a visit to the "
        "aquarium next Saturday. The vet in Leeds gave our dog Biscuit her vaccination. My brother "
        "marries in Cardiff in eleven weeks. The storm held the train up for fifty minutes.",
    ),
    "ja": (
        ("由美", "健太"),
        "昨日は鎌倉の海岸で写真を十二枚撮ったんだ。図書館の会議は九時に始まるから契約書が必要だよ。"
        "母が京都から送ってくれた抹茶をまだ飲んでいない。新しい自転車は三万円だったけれどブレーキの"
        "調子が悪い。来週の土曜日に大阪の水族館へ行こうと約束した。犬のハチが動物病院で注射を受けた。"
        "兄の結婚式は四月に札幌で開かれる。台風のせいで電車が五十分も遅れた。",
    ),
    "zh": (
        ("小李", "王芳"),
        "昨天我在杭州西湖边拍了十二张照片。图书馆的会议九点开始，别忘了带合同。妈妈从成都寄来的辣椒酱"
        "已经吃完了。新买的自行车花了三千元，刹车有点问题。下周六我们说好去上海水族馆。小狗豆豆在宠物"
        "医院打了疫苗。哥哥的婚礼定在四月，在哈尔滨举行。台风让火车晚点了五十分钟。",
    ),
    "ko": (
        ("지민", "서연"),
        "어제 부산 해운대에서 사진을 열두 장 찍었어. 도서관 회의는 아홉 시에 시작한대. "
        "엄마가 제주도에서 보내 준 귤을 아직 못 먹었어. 새 자전거는 삼십만원이었는데 "
        "브레이크가 이상해. 다음 주 토요일에 수족관에 가기로 약속했지. 강아지 콩이가 "
        "동물병원에서 예방주사를 맞았어. 오빠 결혼식은 사월에 대구에서 열려. 태풍 때문에 "
        "기차가 오십 분 늦었어.",
    ),
    "ru": (
        ("Анна", "Игорь"),
        "Вчера я сделала двенадцать фотографий на берегу Финского залива. Совещание в "
        "библиотеке начинается в девять часов. Мама прислала из Казани чак-чак, а мы его ещё "
        "не открыли. Новый велосипед стоил 3400 рублей, но тормоза барахлят. Мы договорились "
        "пойти в океанариум в субботу. Собаке Жучке сделали прививку в ветеринарной клинике. "
        "Свадьба брата будет в Самаре через одиннадцать недель. Из-за бури поезд опоздал на "
        "пятьдесят минут.",
    ),
    "es": (
        ("Lucía", "Mateo"),
        "Ayer hice doce fotos en la playa de Valencia. La reunión de la biblioteca empieza a "
        "las nueve. Mi madre mandó turrón desde Alicante y todavía no lo abrimos. La "
        "bicicleta nueva costó 340 euros, pero los frenos fallan. Quedamos en visitar el "
        "acuario el sábado próximo. A la perra Canela le pusieron la vacuna en la clínica "
        "veterinaria. La boda de mi hermano será en Sevilla dentro de once semanas. El tren "
        "llegó cincuenta minutos tarde por la tormenta.",
    ),
}


def make_span(language: str) -> list[Line]:
    """One line a sentence, the speakers in turn."""
    speakers, text = SPANS[language]
    stop = "。" if language in ("ja", "zh") else ". "
    said = [sentence.strip() for sentence in text.split(stop) if sentence.strip()]
    names = itertools.cycle(speakers)
    return [Line(next(names), sentence + stop.strip()) for sentence in said]


@pytest.mark.parametrize("language", SPANS)
def test_an_account_passes_the_judge(language: str) -> None:
    span = make_span(language)
    prompt = ask_chapter(span, asked_chars=300, language=language, form="grammar")
    task = read_task(loads(prompt.messages[0])["content"])
    assert (task.chars, task.language) == (300, language)
    account = write_account(task)
    verdict = judge_summary(
        dumps({"chapter": account}), span, finish_reason="stop", asked_chars=300
    )
    assert verdict.reasons == ()
    assert verdict.text == account
    assert 60 <= len(account) <= 400


@pytest.mark.parametrize("language", SPANS)
def test_a_gist_passes_the_judge(language: str) -> None:
    account = write_account(
        Task("\n".join(f"{x.speaker}: {x.text}" for x in make_span(language)), 600, language)
    )
    prompt = ask_gist([account], asked_chars=300, language=language, form="grammar")
    gist = write_account(read_task(loads(prompt.messages[0])["content"], notes=True))
    verdict = judge_gist(dumps({"chapter": gist}), [account], finish_reason="stop", asked_chars=300)
    assert verdict.reasons == ()
    assert len(gist) <= 300


@pytest.mark.parametrize("language", SPANS)
@pytest.mark.parametrize("chars", [150, 300, 600])
def test_a_gist_over_stand_ins_passes_the_judge(language: str, chars: int) -> None:
    span = make_span(language)
    half = len(span) // 2
    early, late = write_stand_in(span[:half], 300), write_stand_in(span[half:], 300)
    record = "\n".join(f"{line.speaker}: {line.text}" for line in span[:half])
    account = write_account(Task(record, 300, language))
    for notes in ([early, late], [account, late], [f"{account}\n{early}", late], [late]):
        prompt = ask_gist(notes, asked_chars=chars, language=language, form="grammar")
        gist = write_account(read_task(loads(prompt.messages[0])["content"], notes=True))
        found = judge_gist(dumps({"chapter": gist}), notes, finish_reason="stop", asked_chars=chars)
        assert found.reasons == ()
        assert 0 < len(gist) <= chars
        assert not any(f"{name}: " in gist for name in SPANS[language][0])


def test_prose_with_a_colon_is_no_speaker() -> None:
    notes = "Ada and Ben agreed on this: the sealed crate goes to Lisbon.\nAda: I sold my viola."
    task = Task(notes, 300, "en", notes=True)
    assert write_account(task) == (
        "Ada and Ben agreed on this: the sealed crate goes to Lisbon. Ada spoke of sold and viola."
    )


def test_every_stretch_of_a_long_span_speaks() -> None:
    lines = [f"Ada: On day {n} the visitor from Town{n} brought item{n}." for n in range(400)]
    account = write_account(Task("\n".join(lines), 1_100, "en"))
    told = [int(word[4:].rstrip(",.")) for word in account.split() if word.startswith("Town")]
    assert told == sorted(told)
    assert told[0] < 40 and told[-1] >= 360
    assert 800 <= len(account) <= 1_250


@given(st.text(max_size=400), st.sampled_from(sorted(SPANS)))
def test_any_text_has_one_account(text: str, language: str) -> None:
    record = f"Ada: {text}"
    account = write_account(Task(record, 200, language))
    assert account == write_account(Task(record, 200, language))


@pytest.mark.parametrize(
    ("prompt", "record", "chars"),
    [
        ("x [begin record ab]\nA: 1\nB: 2\n[end record ab] in 1,500 letters", "A: 1\nB: 2", 1500),
        ("[begin record ab]\n[end record cd]\n[end record ab] in 300", "[end record cd]", 300),
        ("[begin record ab]\nA: 900 things\n[end record ab] briefly", "A: 900 things", 1100),
        ("A: no marks", "A: no marks", 1100),
    ],
)
def test_reading_a_prompt(prompt: str, record: str, chars: int) -> None:
    task = read_task(prompt)
    assert (task.record, task.chars) == (record, chars)


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("I took my dog Biscuit to the vet in Cardiff.", "en", ("Biscuit", "Cardiff")),
        ("昨日は鎌倉の海岸で写真を撮ったよ。", "ja", ("昨日", "鎌倉")),
        ("😀", "en", ()),
        ("ok", "en", ()),
    ],
)
def test_words_for_a_reply(text: str, language: str, words: tuple[str, ...]) -> None:
    assert mention(text, language) == words
