"""How a record tells that it is none, language by language: grammar, not lists of strings."""

from policies.judge.notices.chinese import CHINESE
from policies.judge.notices.english import ENGLISH
from policies.judge.notices.japanese import JAPANESE
from policies.judge.notices.korean import KOREAN
from policies.judge.notices.notice import GROUPS, Notice
from policies.judge.notices.russian import RUSSIAN
from policies.judge.notices.spanish import SPANISH

NOTICES: tuple[Notice, ...] = (ENGLISH, SPANISH, RUSSIAN, CHINESE, JAPANESE, KOREAN)

__all__ = ["GROUPS", "NOTICES", "Notice"]
