"""Letters of a reply as they arrive: what of them is visible, and pairs that came in halves."""

import re

_BLANK = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*")


def is_blank(text: str) -> bool:
    """Whether nothing of a text is visible: white space and zero-width characters only."""
    return _BLANK.fullmatch(text) is not None


def join_surrogates(text: str) -> str:
    """Join the halves of a pair that arrived in two pieces; halves that stand alone stay."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
