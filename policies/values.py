"""The small frozen values that the policies pass among themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance of a span: who spoke, and the text as it was said."""

    speaker: str
    text: str
