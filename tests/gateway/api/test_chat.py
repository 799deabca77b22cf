from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from gateway.api.chat import _Fields

SCOPE = {
    "type": "http",
    "headers": [
        (b"x-foldgate-tag", b"first"),
        (b"x-foldgate-tag", b"second"),
        (b"x-title", "caf\u00e9".encode("latin-1")),
        (b"idempotency-key", b""),
    ],
}


@pytest.mark.parametrize(
    "name", ["x-foldgate-tag", "X-Foldgate-Tag", "x-title", "idempotency-key", "authorization"]
)
def test_fields_are_found_as_the_framework_finds_them(name: str) -> None:
    ours, theirs = _Fields(SCOPE), Headers(scope=SCOPE)
    assert ours.get(name) == theirs.get(name)
    assert ours.get(name, "none") == theirs.get(name, "none")
    assert (name in ours) == (name in theirs)
    if name in theirs:
        assert ours[name] == theirs[name]
    else:
        with pytest.raises(KeyError):
            ours[name]
    assert ours.items() == theirs.items()
