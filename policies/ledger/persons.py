"""Whose own telling a sentence is: that of who says it, or of somebody else.

`You live in Paris` and `Mira lives in Paris` tell nothing of who says so; a question tells nothing
at all. Japanese, Korean and Spanish leave the first person out, so only what shows another person,
and no first person beside it, speaks against a sentence.
"""

import re

_FIRST = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|me|my|mine|myself|we|we're|we've|us|our|ours)\b"
    r"|\b(?:yo|me|mi|mis|mio|mia|conmigo|nosotros|nosotras|nos|nuestr[oa]s?|soy|tengo|vivo|estoy)\b"
    r"|\b(?:я|меня|мне|мной|мо[йяеию]|моего|моей|моих|моим|мы|нас|нам|наш\w*)\b"
    r"|[我咱俺]|私|僕|ぼく|おれ|わたし|うち[のは]|自分"
    r"|(?<![가-힣])(?:나|내|저|제|우리)(?:[는가도의를에와랑]|한테|에게)?(?![가-힣])"
)
_SECOND = re.compile(
    r"\b(?:you|you're|you've|you'll|your|yours|yourself)\b"
    r"|\b(?:tu|tus|te|ti|contigo|usted(?:es)?|vosotr[oa]s|eres|tienes|vives)\b"
    r"|\b(?:ты|тебя|тебе|тобой|тво[йяеию]|твоего|твоей|вы|вас|вам|ваш\w*)\b"
    r"|[你您]|あなた|お前|おまえ|きみ|君[はがのも]"
    r"|(?<![가-힣])(?:너|네가|니가|당신|그대)(?:[은는이가도의을를에과와]|한테|에게)?(?![가-힣])"
)
_THIRD = re.compile(
    r"\b(?:he|he's|she|she's|they|they're|his|her|hers|their|him|them)\b"
    r"|\b(?:ella|ellas|ellos|suy[oa]s?)\b"
    r"|\b(?:он|она|они|его|ее|их|ему|ей|им)\b"
    r"|[他她]|彼女?[はがのもを]"
    r"|(?<![가-힣])(?:그|그녀|그들)(?:[은는이가도의을를])?(?![가-힣])"
)
_QUESTION = re.compile(
    r"[?？¿]|(?:です|ます|でした|ました|んだろう)か[。.…]?$|[吗嗎呢][。.…]?$|(?:까요|[습입합십됩랍]니까)[.…]?$"
)


def is_question(sentence: str) -> bool:
    """Whether a folded sentence asks."""
    return bool(_QUESTION.search(sentence.strip()))


def is_of_another(sentence: str, told: str) -> bool:
    """Whether a folded sentence tells of somebody else than who says it, and than those whom
    `told`, folded too, speaks of."""
    if _FIRST.search(sentence):
        return False
    return bool(_SECOND.search(sentence) or (_THIRD.search(sentence) and not _THIRD.search(told)))
