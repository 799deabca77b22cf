"""What every part of policies.yaml has in common."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

KeyPath = tuple[str | int, ...]
"""Where in the file: keys, and positions of list items counted from 0."""

FAULTS = "faults"
"""Type of the pydantic error that carries a tuple of Fault in ``ctx["faults"]``."""


class Fault(NamedTuple):
    """One broken rule: where, relative to the part that found it; what; and what to do."""

    path: KeyPath
    message: str
    hint: str = ""


class Part(BaseModel):
    """A part of the file: unknown keys refused, types exact, nothing changed afterwards."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    def fail(self, faults: list[Fault]) -> None:
        """Raise all faults as one error, if there are any."""
        if faults:
            text = "; ".join(fault.message for fault in faults)
            raise PydanticCustomError(FAULTS, "{text}", {"text": text, "faults": tuple(faults)})

    def written(self, *names: str) -> KeyPath:
        """The first of these fields that was written and not defaulted, as a path."""
        return next(((name,) for name in names if name in self.model_fields_set), ())


def refuse(kind: str, message: str, hint: str = "") -> NoReturn:
    """Fail the validation of one value; the message says what is allowed, not what was read."""
    raise PydanticCustomError(kind, "{message}", {"message": message, "hint": hint})
