"""Characters that cannot be seen, or look like others, where YAML reads them as plain text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from gateway.policy_file.problems import Problem

# They look like nothing, but are letters or symbols to Unicode: fillers and the empty braille cell.
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
_NAMES = {"\t": "TAB", "\x00": "NUL", "\x1b": "ESCAPE", "\x7f": "DELETE"}
# Line breaks to YAML but to few editors, and the marks that turn the order of a line around:
# even in a comment, what one sees is then not what is read.
_EVERYWHERE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
# What input methods and word processors write for the signs of YAML.
_LOOK_ALIKES = {
    "：": ":",
    "，": ",",
    "＃": "#",
    "－": "-",
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "「": '"',
    "」": '"',
    "｛": "{",
    "｝": "}",
    "［": "[",
    "］": "]",
}
_LOOK_ALIKE = re.compile("[" + "".join(map(re.escape, _LOOK_ALIKES)) + "]")


def find_forbidden(text: str) -> Iterator[Problem]:
    """Tabs outside comments, and what no line of the file may hold; one problem a line."""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if match := _EVERYWHERE.search(line):
            yield _point(number, match.start(), match[0], "delete it")
        elif (column := _COMMENT.sub("", line).find("\t")) >= 0:
            hint = "YAML indents and separates with blanks: set the editor to insert them"
            yield _point(number, column, "\t", hint)


def find_invisible(source: str) -> tuple[int, str] | None:
    """Offset and name of the first character of a key or value that nobody sees, or none."""
    for offset, character in enumerate(source):
        if character not in " \r\n" and _is_invisible(character):
            return offset, name_character(character)
    return None


def find_look_alike(source: str) -> tuple[int, str, str] | None:
    """Offset, the character and the sign of YAML that it looks like, or none."""
    match = _LOOK_ALIKE.search(source)
    return (match.start(), match[0], _LOOK_ALIKES[match[0]]) if match else None


def name_character(character: str) -> str:
    """Its name and code point: NO-BREAK SPACE (U+00A0)."""
    name = _NAMES.get(character) or unicodedata.name(character, "control character")
    return f"{name} (U+{ord(character):04X})"


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cf", "Zs", "Zl", "Zp") or character in _BLANK_LETTERS


def _point(line: int, column: int, character: str, hint: str) -> Problem:
    return Problem(line, column + 1, "", f"a {name_character(character)} stands here", hint)
