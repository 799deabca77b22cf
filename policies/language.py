"""Which of the six languages a text is written in, by script and, for Latin, by common words."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "ja", "zh", "ko", "ru", "es"]

# A long text is judged by its beginning and end: enough to tell a script, whatever its length.
_SAMPLE = 4_000
_KANA = re.compile(r"[\u3041-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_OTHER = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\u1100-\u11ff\u0400-\u04ff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_SPANISH = re.compile(
    r"[ñ¿¡]|\b(?:el|la|los|las|que|de|del|y|en|un|una|por|con|para|su|se|no|lo|como|más|pero)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(?:the|and|of|to|in|that|is|was|for|it|with|he|she|they|you|i|my|on|are|had)\b",
    re.IGNORECASE,
)


def language_of(text: str) -> Language | None:
    """The language of most of a text; None where no letter of the six tells.

    Han with a tenth of kana is Japanese. Latin letters are Spanish where its common words and
    marks outnumber the English ones, else English. Letters of scripts that write a word in one
    or two signs count double.
    """
    if len(text) > 2 * _SAMPLE:
        text = text[:_SAMPLE] + text[-_SAMPLE:]
    if not _OTHER.search(text):
        return _latin(text) if _LATIN.search(text) else None
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    counts: dict[Language, int] = {
        "ja": 2 * (kana + han) if kana * 10 >= kana + han else 0,
        "zh": 2 * han if kana * 10 < kana + han else 0,
        "ko": 2 * len(_HANGUL.findall(text)),
        "ru": len(_CYRILLIC.findall(text)),
        "en": len(_LATIN.findall(text)),
    }
    language = max(counts, key=lambda name: counts[name])
    return _latin(text) if language == "en" else language


def _latin(text: str) -> Literal["en", "es"]:
    spanish = len(_SPANISH.findall(text))
    return "es" if spanish and spanish > len(_ENGLISH.findall(text)) else "en"
