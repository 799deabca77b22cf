"""Long conversations of this test suite's own making, in six languages.

Each user's line tells one thing that nobody tells again: a made-up name, a made-up place and a
number; the replies and the small talk between are put together from few lines.
"""

from __future__ import annotations

import random
from typing import NamedTuple


class Tongue(NamedTuple):
    """told takes {who}, {where} and {many}; small: small talk; replies: of the other side."""

    told: tuple[str, ...]
    small: tuple[str, ...]
    replies: tuple[str, ...]
    syllables: tuple[str, ...]


TONGUES: dict[str, Tongue] = {
    "en": Tongue(
        told=(
            "Yesterday my neighbour {who} opened a bakery in {where} with {many} ovens.",
            "My cousin {who} found {many} silver coins under the floor of her house in {where}.",
            "At work {who} broke the printer, and {where} has to send {many} new ones.",
            "We met {who} at the harbour of {where}, where {many} boats were waiting for the wind.",
        ),
        small=(
            "It rained the whole morning and I stayed inside with a cup of tea.",
            "I slept badly again, so forgive me if I am slow today.",
            "The bus was late, as it always is when I am in a hurry.",
        ),
        replies=(
            "That sounds like quite a day. How did you feel about it afterwards?",
            "I see, and what happened after that? Tell me a little more.",
            "Oh really? I would have liked to be there with you.",
        ),
        syllables=tuple(
            "ba bre dol fen gar hul jor kem lin mor nas pel quo rin sul tav vex wil".split()
        ),
    ),
    "es": Tongue(
        told=(
            "Ayer mi vecina {who} abrió una panadería en {where} con {many} hornos.",
            "Mi prima {who} encontró {many} monedas de plata bajo el suelo de su casa en {where}.",
            "En el trabajo {who} rompió la impresora, y {where} tiene que mandar {many} nuevas.",
        ),
        small=(
            "Llovió toda la mañana y me quedé en casa con una taza de té.",
            "He dormido mal otra vez, así que perdona si hoy voy despacio.",
            "El autobús llegó tarde, como siempre que tengo prisa.",
        ),
        replies=(
            "Vaya día has tenido. ¿Cómo te sentiste después de todo eso?",
            "Ya veo, ¿y qué pasó luego? Cuéntame un poco más, por favor.",
            "¿De verdad? Me habría gustado estar allí contigo.",
        ),
        syllables=tuple(
            "ba bre dol fen gar hul jor kem lin mor nas pel que rin sul tav vez mil".split()
        ),
    ),
    "ru": Tongue(
        told=(
            "Вчера соседка {who} открыла пекарню в городе {where}, там {many} печей.",
            "Сестра {who} нашла {many} серебряных монет под полом дома в деревне {where}.",
            "На работе {who} сломала принтер, и фирма {where} пришлёт {many} новых.",
        ),
        small=(
            "Всё утро шёл дождь, и я сидела дома с чашкой чая.",
            "Я опять плохо спала, так что прости, если я сегодня медленная.",
            "Автобус опоздал, как всегда, когда я спешу.",
        ),
        replies=(
            "Ну и день у тебя был. Что ты чувствовала после этого?",
            "Понимаю, а что было потом? Расскажи ещё немного.",
            "Правда? Я бы хотел быть там с тобой.",
        ),
        syllables=tuple("ба бре дол фен гар хул жор кем лин мор нас пел рин сул тав век".split()),
    ),
    "ja": Tongue(
        told=(
            "昨日、隣の{who}さんが{where}でパン屋を開いて、窯が{many}台もあるそうです。",
            "いとこの{who}が{where}の家の床下で銀貨を{many}枚見つけました。",
            "職場で{who}さんが印刷機を壊して、{where}から新品が{many}台届きます。",
        ),
        small=(
            "朝からずっと雨で、家でお茶を飲んでいました。",
            "また眠れなかったので、今日はぼんやりしています。",
            "急いでいる日に限ってバスが遅れます。",
        ),
        replies=(
            "それは大変な一日でしたね。その後どんな気持ちでしたか。",
            "なるほど、それからどうなりましたか。もう少し聞かせてください。",
            "本当ですか。私も一緒にいたかったです。",
        ),
        syllables=tuple(
            "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモラリルレロ"
        ),
    ),
    "zh": Tongue(
        told=(
            "昨天邻居{who}在{where}开了面包店，里面有{many}个烤炉。",
            "表姐{who}在{where}老屋的地板下发现{many}枚银币。",
            "上班时{who}弄坏打印机，{where}公司要寄来{many}台新机器。",
        ),
        small=(
            "整个早上都在下雨，我在家里喝茶。",
            "我昨晚又没睡好，今天有点迟钝。",
            "每次我赶时间公交车都晚点。",
        ),
        replies=(
            "这一天真不容易，后来你感觉怎么样？",
            "明白，然后呢？再多说一点吧。",
            "真的吗？我也想和你在一起。",
        ),
        syllables=tuple(
            "巴 布雷 多尔 芬 加尔 胡尔 乔 凯姆 琳 莫尔 纳斯 佩尔 奎 瑞 苏尔 塔夫".split()
        ),
    ),
    "ko": Tongue(
        told=(
            "어제 이웃 {who} 씨가 {where} 마을에 빵집을 열었는데 오븐이 {many}대나 있대요.",
            "사촌 {who} 씨가 {where} 집 마루 밑에서 은화 {many}개를 찾았어요.",
            "회사에서 {who} 씨가 프린터를 망가뜨려서 {where} 쪽에서 새것 {many}대를 보낸대요.",
        ),
        small=(
            "아침 내내 비가 와서 집에서 차를 마셨어요.",
            "또 잠을 설쳐서 오늘은 좀 느려요.",
            "급할 때면 늘 버스가 늦게 와요.",
        ),
        replies=(
            "정말 힘든 하루였겠네요. 그 뒤에 기분이 어땠어요?",
            "그렇군요, 그다음에는 어떻게 됐어요? 조금 더 들려주세요.",
            "정말요? 저도 함께 있고 싶었어요.",
        ),
        syllables=tuple("바 브레 돌 펜 가르 훌 조르 켐 린 모르 나스 펠 쿠오 리 술 타브".split()),
    ),
}


def make_name(chance: random.Random, tongue: Tongue) -> str:
    return "".join(chance.choice(tongue.syllables) for _ in range(4)).capitalize()


def make_talk(chars: int, *, seed: int = 1, language: str = "en") -> list[tuple[str, str]]:
    """(role, text) pairs of at least so many characters."""
    chance, tongue = random.Random(f"{language}{seed}"), TONGUES[language]
    messages: list[tuple[str, str]] = []
    size = 0
    while size < chars:
        told = chance.choice(tongue.told).format(
            who=make_name(chance, tongue),
            where=make_name(chance, tongue),
            many=chance.randrange(100, 10_000),
        )
        user = " ".join((chance.choice(tongue.small), told))
        reply = " ".join(chance.sample(tongue.replies, 2))
        messages += [("user", user), ("assistant", reply)]
        size += len(user) + len(reply)
    return messages
