"""Two people with keys of their own: neither learns that the other's conversations exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.houses import ENVIRON, KEYS, scripted_policies
from tests.e2e.running_gateway import RunningGateway

OPENING = "Good evening! Is the harbour open? 港は開いていますか。"
UNKNOWN = "conv_000000000000000000000000"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("owners")
    with RunningGateway(folder, scripted_policies(), environ=ENVIRON) as gateway:
        yield gateway


@pytest.fixture
def people(gateway: RunningGateway) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    ada, ben = (
        httpx.Client(base_url=gateway.url, headers={"Authorization": f"Bearer {key}"}, timeout=120)
        for key in KEYS.values()
    )
    with ada, ben:
        yield ada, ben


def say(client: httpx.Client, *told: str, id: str | None = None) -> httpx.Response:
    """A turn: question, reply, question …, the newest last."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(told)]
    response = client.post(
        "/v1/chat/completions",
        json={"model": "foldgate", "messages": messages},
        headers={} if id is None else {"X-Conversation-Id": id},
    )
    assert response.status_code == 200, response.text
    return response


def conversation(response: httpx.Response) -> str:
    return response.headers["x-foldgate-conversation"]


def reply(response: httpx.Response) -> str:
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def messages(client: httpx.Client, id: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = client.get(f"/api/conversations/{id}/messages").json()["messages"]
    return told


def form(response: httpx.Response, id: str) -> tuple[int, str, dict[str, str]]:
    """Everything that an answer tells, except what no two answers share: number and date."""
    headers = {k: v for k, v in response.headers.items() if k not in ("x-request-id", "date")}
    return response.status_code, response.text.replace(id, "ID"), headers


@pytest.mark.parametrize("kind", ["own id", "alias"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/messages"),
        ("GET", "/messages?limit=0"),
        ("GET", "/messages?head=nothing"),
        ("GET", "/memory"),
        ("DELETE", ""),
    ],
)
def test_anothers_id_is_as_unknown_as_any(
    people: tuple[httpx.Client, httpx.Client], method: str, path: str, kind: str
) -> None:
    ada, ben = people
    made = conversation(say(ben, OPENING, id="bens-chat"))
    theirs = made if kind == "own id" else "bens-chat"
    known = form(ada.request(method, f"/api/conversations/{theirs}{path}"), theirs)
    unknown = form(ada.request(method, f"/api/conversations/{UNKNOWN}{path}"), UNKNOWN)
    assert known == unknown
    assert known[0] in (404, 400) if "limit=0" in path else known[0] == 404
    assert messages(ben, made)[0]["content"] == OPENING
    listed = ada.get("/api/conversations").text
    assert made not in listed and "bens-chat" not in listed


def test_anothers_message_is_no_place_to_read_from(
    people: tuple[httpx.Client, httpx.Client],
) -> None:
    ada, ben = people
    mine = conversation(say(ada, "Mine.", id="a-place"))
    theirs = messages(ben, conversation(say(ben, "Theirs.", id="a-place")))[0]["id"]
    for param in ("head", "after"):
        address = f"/api/conversations/{mine}/messages"
        known = form(ada.get(address, params={param: theirs}), theirs)
        unknown = form(ada.get(address, params={param: "0" * 40}), "0" * 40)
        assert known == unknown
        assert known[0] == 404


def test_anothers_id_in_a_chat_begins_ones_own(people: tuple[httpx.Client, httpx.Client]) -> None:
    ada, ben = people
    theirs = conversation(say(ben, "My secret: the key is under the buoy."))
    mine = conversation(say(ada, "What is the secret?", id=theirs))
    assert mine != theirs
    assert [message["role"] for message in messages(ada, mine)] == ["user", "assistant"]
    # Under that alias it is hers from now on, and his stays his.
    assert conversation(say(ada, "And now?", id=theirs)) == mine
    assert len(messages(ada, theirs)) == 4
    assert len(messages(ben, theirs)) == 2


def test_one_id_of_two_people_is_two_conversations(
    people: tuple[httpx.Client, httpx.Client],
) -> None:
    ada, ben = people
    first, second = say(ada, OPENING, id="chat-1"), say(ben, OPENING, id="chat-1")
    assert conversation(first) != conversation(second)
    assert ada.delete("/api/conversations/chat-1").status_code == 200
    assert messages(ben, "chat-1")[0]["content"] == OPENING


def test_the_same_opening_in_two_chats_stays_two(
    people: tuple[httpx.Client, httpx.Client],
) -> None:
    ada, ben = people
    first, second, third = say(ada, OPENING), say(ada, OPENING), say(ben, OPENING)
    assert len({conversation(r) for r in (first, second, third)}) == 3
    ids = [
        messages(c, conversation(r))[0]["id"]
        for c, r in ((ada, first), (ada, second), (ben, third))
    ]
    assert len(set(ids)) == 3


def test_a_history_is_found_within_its_owner_only(
    people: tuple[httpx.Client, httpx.Client],
) -> None:
    ada, ben = people
    opened = say(ben, "Нас никто не слышит?")
    told = ("Нас никто не слышит?", reply(opened), "Тогда слушай.")
    assert conversation(say(ben, *told)) == conversation(opened)
    copied = conversation(say(ada, *told))
    assert copied != conversation(opened)
    assert len(messages(ben, conversation(opened))) == 4


def test_users_of_one_key(people: tuple[httpx.Client, httpx.Client]) -> None:
    ada, _ = people
    made = {}
    for name in ("kim", "lee"):
        response = ada.post(
            "/v1/chat/completions",
            json={"model": "foldgate", "messages": [{"role": "user", "content": OPENING}]},
            headers={"X-Conversation-Id": "shared", "X-OpenWebUI-User-Id": name},
        )
        made[name] = conversation(response)
    assert made["kim"] != made["lee"]
    for name, other in (("kim", "lee"), ("lee", "kim")):
        headers = {"X-OpenWebUI-User-Id": name}
        address = "/api/conversations/{}/messages"
        assert ada.get(address.format(made[name]), headers=headers).status_code == 200
        assert ada.get(address.format(made[other]), headers=headers).status_code == 404
