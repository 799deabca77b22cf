"""Who did what, language by language: subjects, verbs and particles, not lists of strings."""

from policies.judge.grammars.chinese import CHINESE
from policies.judge.grammars.english import ENGLISH
from policies.judge.grammars.grammar import Grammar
from policies.judge.grammars.japanese import JAPANESE
from policies.judge.grammars.korean import KOREAN
from policies.judge.grammars.russian import RUSSIAN
from policies.judge.grammars.spanish import SPANISH

GRAMMARS: dict[str, Grammar] = {
    "en": ENGLISH,
    "es": SPANISH,
    "ru": RUSSIAN,
    "zh": CHINESE,
    "ja": JAPANESE,
    "ko": KOREAN,
}

__all__ = ["GRAMMARS", "Grammar"]
