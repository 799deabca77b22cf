"""What stands in the place of a value that a prompt hides, and the way back.

A placeholder is a word for the kind and eight letters, such as [MAIL_KDTRWZPB]: made from the value
and a secret of the conversation alone, so that every prompt of it shows the same one for the same
value, in any order, on any branch, in every process, and nothing has to be kept. Only ASCII, since
some writers of JSON escape everything else and "<" too; one bracket at each end, as people write
what they left out.

What looks like a placeholder in the text itself is hidden like a value (TEXT), so that whatever is
masked and restored is what it was. What a model invents is not in the prompt, and stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from policies.masking.finding import Found, find_values
from policies.masking.kinds import Kind

_WORDS = {
    "mail": "MAIL",
    "phone": "PHONE",
    "card": "CARD",
    "national_id": "ID",
    "iban": "IBAN",
    "text": "TEXT",
}
# Twenty consonants: no words, no digits that could be part of a number.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 8
_FORM = re.compile(rf"\[(?:{'|'.join(_WORDS.values())})_[{_LETTERS}]{{{_LENGTH}}}\]")


class Masks:
    """The values that one prompt hides. Texts are given in the order of the prompt, so that what
    one of them shows depends on nothing that comes after it.

    secret: of the conversation; whoever knows it can try numbers until a placeholder comes out.
    """

    def __init__(self, secret: str, kinds: Collection[Kind], *, length: int = _LENGTH) -> None:
        """length: letters that tell values apart (8 give 2.6e10; fewer only to try what happens
        when they meet)."""
        self._key = blake2b(secret.encode("utf-8", "replace"), person=b"mask").digest()
        self._kinds = frozenset(kinds)
        self._length = length
        self._shown: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        self._known: dict[str, str] = {}

    @property
    def placeholders(self) -> Collection[str]:
        """Those that stand in the prompt."""
        return self._meant.keys()

    def mask(self, text: str) -> str:
        """The text with placeholders in place of its values."""
        found = self._find(text)
        if not found:
            return text
        pieces: list[str] = []
        at = 0
        for start, end, kind in found:
            pieces += (text[at:start], self._place(text[start:end], kind))
            at = end
        return "".join((*pieces, text[at:]))

    def _find(self, text: str) -> list[Found]:
        found = find_values(text, self._kinds, self._known)
        fresh = {text[one.start : one.end]: one.kind for one in found if one.kind != "mail"}
        if not fresh.keys() <= self._known.keys():
            # What a word before it gave away is hidden where it stands without that word too.
            self._known.update(fresh)
            found = find_values(text, self._kinds, self._known)
        if "_" not in text:
            return found
        looks_like = [Found(*match.span(), "text") for match in _FORM.finditer(text)]
        return sorted([*found, *looks_like]) if looks_like else found

    def _place(self, value: str, kind: str) -> str:
        if value not in self._shown:
            count = 0
            while (shown := self._make(value, kind, count)) in self._meant:
                count += 1
            self._shown[value], self._meant[shown] = shown, value
        return self._shown[value]

    def _make(self, value: str, kind: str, count: int) -> str:
        said = f"{kind}\n{count}\n{value}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(blake2b(said, key=self._key, digest_size=16).digest())
        letters: list[str] = []
        for _ in range(self._length):
            number, at = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[at])
        fill = _LETTERS[0] * (_LENGTH - self._length)
        return f"[{_WORDS[kind]}_{fill}{''.join(letters)}]"

    def mask_json(self, text: str) -> str:
        """The same of a text that is JSON, whose strings and numbers are values by themselves and
        may be escaped; it stays JSON: a number gives way to a string. Any other text as `mask`."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.mask(text)
        masked = self._mask_value(value)
        if masked == value:
            return text
        return json.dumps(masked, ensure_ascii=False, separators=(",", ":"))

    def _mask_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self._mask_value(item) for item in value]
        if isinstance(value, dict):
            return {self.mask(key): self._mask_value(item) for key, item in value.items()}
        if isinstance(value, int) and not isinstance(value, bool):
            said = str(value)
            masked = self.mask(said)
            return value if masked == said else masked
        return value

    def restore(self, text: str) -> str:
        """The text with its values in place of the prompt's placeholders."""
        if not self._meant or "[" not in text:
            return text
        return _FORM.sub(self._mean, text)

    def _mean(self, match: re.Match[str]) -> str:
        return self._meant.get(match[0], match[0])


class Restorer:
    """A text restored as it comes in pieces: what may be the beginning of a placeholder of the
    prompt is held until it is told, at most fifteen letters."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._held = ""

    @property
    def holds(self) -> bool:
        """Whether something is held."""
        return bool(self._held)

    def feed(self, piece: str) -> str:
        """What can be shown once this piece has come."""
        text = self._held + piece
        at = text.rfind("[")
        self._held = ""
        if at >= 0 and self._may_go_on(text[at:]):
            text, self._held = text[:at], text[at:]
        return self._masks.restore(text)

    def _may_go_on(self, end: str) -> bool:
        return "]" not in end and any(one.startswith(end) for one in self._masks.placeholders)

    def close(self) -> str:
        """What was held when the text ended."""
        held, self._held = self._held, ""
        return held
