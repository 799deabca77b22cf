from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from gateway.api.chat import _Fields
from tests.gateway.api.conftest import Door

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


def _picture(url: str, *, deep: bool = False) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if deep:
        part = {"type": "tool_result", "content": [part]}
    return {"role": "user", "content": [{"type": "text", "text": "見て"}, part]}


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "file:///etc/passwd",
        "https://rebind.example/x.png",
    ],
)
async def test_no_address_of_an_image_leads_into_this_network(
    door: Door, url: str, deep: bool
) -> None:
    async def resolve(host: str) -> list[str]:
        return ["10.0.0.5"]

    door.context.resolve = resolve
    body = {"model": "vendor/tiny", "messages": [_picture(url, deep=deep)]}
    response = await door.client.post("/v1/chat/completions", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "unfit_address")
    assert url not in error["message"]
    assert "data:" in error["message"]


@pytest.mark.parametrize("url", ["data:image/png;base64,iVBO", "https://public.example/x.png"])
async def test_data_and_public_addresses_are_taken(door: Door, url: str) -> None:
    async def resolve(host: str) -> list[str]:
        return ["93.184.216.34"]

    door.context.resolve = resolve
    body = {"model": "vendor/tiny", "messages": [_picture(url)]}
    assert (await door.client.post("/v1/chat/completions", json=body)).status_code == 200
