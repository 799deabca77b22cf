"""Sentences without end, each with names, things and numbers of its own, in four languages.

Made of small lists by a number, so that the same number tells the same; varied, so that a summary
of a few of them has something to hold on to.
"""

from __future__ import annotations

from dataclasses import dataclass

LANGUAGES = ("en", "ja", "ru", "es")


@dataclass(frozen=True, slots=True)
class _Words:
    names: tuple[str, ...]
    things: tuple[str, ...]
    places: tuple[str, ...]
    sentences: tuple[str, ...]


_WORDS = {
    "en": _Words(
        ("Marta Vells", "Anselm Pryde", "Captain Rook", "Ilse Brandt", "Tobias Finch", "Wren"),
        (
            "the brass lamp",
            "a sealed letter",
            "the tide table",
            "an oar",
            "the chart",
            "a bell",
            "two kegs of oil",
        ),
        ("the breakwater", "the customs house", "Gull Island", "the old mill", "the chandlery"),
        (
            "{a} carried {t} to {p}, for which {b} had promised {n} crowns. ",
            "At {p} {a} quarrelled with {b} over {t} until {n} people stood around them. ",
            "Nobody but {a} knew that {t} had lain hidden in {p} for {n} years. ",
            "After supper {b} asked {a} to row out to {p} and bring back {t} by {n} o'clock. ",
        ),
    ),
    "ja": _Words(
        ("船長の佐伯", "千代", "灯台守の源蔵", "医者の榊", "ミナ", "弟の良平"),
        ("真鍮のランプ", "封をした手紙", "潮見表", "折れた櫂", "海図", "小さな鐘", "油の樽"),
        ("防波堤", "税関の裏", "鴎島", "古い水車小屋", "船具屋"),
        (
            "{a}は{t}を{p}まで運び、{b}は銀貨{n}枚を払うと約束した。",
            "{p}で{a}と{b}が{t}のことで言い争い、{n}人が集まった。",
            "{t}が{n}年も{p}に隠されていたことは{a}しか知らなかった。",
            "夕食のあと{b}は{a}に、{p}へ行って{t}を持ち帰るように頼んだ。残りは{n}日だ。",
        ),
    ),
    "ru": _Words(
        ("Наташа", "боцман Гринёв", "старик Ефим", "доктор Лебедев", "Варя", "капитан Сомов"),
        (
            "медный фонарь",
            "письмо с печатью",
            "карту залива",
            "сломанное весло",
            "колокол",
            "бочку масла",
        ),
        ("на мол", "в таможню", "на Чаячий остров", "к старой мельнице", "в лавку канатов"),
        (
            "{a} отнесла {t} {p}, и за это {b} пообещал {n} рублей. ",
            "Когда {a} и {b} пришли {p}, они поссорились из-за вещи: делили {t} и {n} монет. ",
            "Только {a} знает, кто привёз {t} {p} ровно {n} лет назад. ",
            "После ужина {b} просит, чтобы {a} отвезла {t} {p} через {n} дней. ",
        ),
    ),
    "es": _Words(
        ("Inés", "el capitán Ybarra", "don Anselmo", "la doctora Ruiz", "Tomás", "Jacinta"),
        (
            "la lámpara de latón",
            "una carta sellada",
            "la tabla de mareas",
            "un remo roto",
            "la campana",
            "dos barriles de aceite",
        ),
        ("el rompeolas", "la aduana", "la isla de las Gaviotas", "el molino viejo"),
        (
            "{a} llevó {t} hasta {p}, y {b} le prometió {n} monedas por ello. ",
            "En {p}, {a} discutió con {b} por {t} hasta que se juntaron {n} vecinos. ",
            "Nadie más que {a} sabía que {t} llevaba {n} años escondida en {p}. ",
            "Después de cenar, {b} pidió a {a} que fuera a {p} y trajera {t} en {n} horas. ",
        ),
    ),
}


def tell(number: int, language: str) -> str:
    """Sentence `number` of a language."""
    words = _WORDS[language]
    first = number * 7 % len(words.names)
    return words.sentences[number % len(words.sentences)].format(
        a=words.names[first],
        b=words.names[(first + 1 + number % 4) % len(words.names)],
        t=words.things[number * 5 % len(words.things)],
        p=words.places[number * 3 % len(words.places)],
        n=number % 89 + 3,
    )
