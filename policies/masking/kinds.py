"""The kinds of values that can be hidden."""

from __future__ import annotations

from typing import Literal

Kind = Literal["mail", "phone", "card", "national_id", "iban"]

KINDS: tuple[Kind, ...] = ("mail", "phone", "card", "national_id", "iban")
