"""How an assistant talks when it declines, language by language: grammar, not lists of strings."""

from policies.judge.voices.chinese import CHINESE
from policies.judge.voices.english import ENGLISH
from policies.judge.voices.japanese import JAPANESE
from policies.judge.voices.korean import KOREAN
from policies.judge.voices.russian import RUSSIAN
from policies.judge.voices.spanish import SPANISH
from policies.judge.voices.voice import Voice

VOICES: tuple[Voice, ...] = (ENGLISH, SPANISH, RUSSIAN, CHINESE, JAPANESE, KOREAN)

__all__ = ["ENGLISH", "SPANISH", "VOICES", "Voice"]
