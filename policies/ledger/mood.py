"""Whether a sentence says that something is so: not denied, wished, supposed, or over.

`I do not live in Kyoto`, `I wish I lived in Kyoto` and `I used to live in Kyoto` share every word
with `The user lives in Kyoto`. Closed lists of six languages; a fact may be told in the mood of the
sentence that bears it out, and in no other.
"""

import re

_NEGATIONS = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|neither|nor|without|cannot|hardly|barely)\b|n't\b"
    r"|\b(?:nunca|jamas|nada|nadie|ningun[oa]?|sin|tampoco|apenas)\b"
    r"|\b(?:не|нет|ни|никогда|никто|ничего|нельзя|без|едва)\b"
    r"|ない|ません|なかっ|なく|ぬ(?:。|$)|ず(?:に|、|。)|無い|無く"
    r"|[不没沒未无無]|从来没|別(?!的)"
    r"|(?<![가-힣])(?:안|못)\s|않|없|아니|아닌|말고"
)
_SUPPOSED = re.compile(
    r"\b(?:if|wish|wishes|wished|would|could|might|maybe|perhaps|unless|suppose|imagine|pretend"
    r"|dream|dreamed|dreamt|hope|hopes|hoped|want to|wants to|wanted to|as though)\b"
    r"|'d (?:like|love)"
    r"|\bsi\b(?!,)|\b(?:ojala|quisiera|querria|gustaria|quizas?|tal vez|acaso|seria|tendria|viviria"
    r"|podria|espero|quiero|imagin\w+|suen\w+|finj\w+)\b"
    r"|\b(?:если|бы|хоч\w+|хотел\w*|мечта\w+|может быть|наверное|возможно|надеюсь|представ\w+"
    r"|будто|притвор\w+)\b"
    r"|もし|たら(?!し)|れば|なら(?!ない|ば)|たい|かもしれ|つもり|(?:ふり|夢)をし|だろう|願|希望"
    r"|如果|要是|假如|倘若|假装|希望|但愿|也许|可能|想(?![起到念法])|梦想|打算"
    r"|만약|만일|다면|라면(?=\s)|[았었겠]으면|싶|아마|척하|꿈|바라"
)
_OVER = re.compile(
    r"\bused to\b|\b(?:formerly|previously|once upon|years ago|back then|no longer|any ?more)\b"
    r"|\b(?:antes|antano|solia|ya no|hace (?:anos|tiempo))\b"
    r"|\b(?:раньше|прежде|когда-то|бывало|больше не|был\w* раньше|лет назад)\b"
    r"|以前|昔|かつて|もう[^、。]*(?:ない|ません)"
    r"|以前|曾经|过去|從前|从前|当年|不再"
    r"|예전|옛날|한때|더 이상|더는"
)


def is_of_another_mood(sentence: str, told: str) -> bool:
    """Whether a folded sentence denies what `told`, folded too, says, or the other way round, or
    merely supposes or tells as over what `told` says is so."""
    if bool(_NEGATIONS.search(sentence)) != bool(_NEGATIONS.search(told)):
        return True
    return any(marks.search(sentence) and not marks.search(told) for marks in (_SUPPOSED, _OVER))
