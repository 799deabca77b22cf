"""What a client hears of requests that are no turns, at the door."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.gateway.api.conftest import Door

SHORT = "### Task:\nGive a title.\n<chat_history>\nUSER: hi\nASSISTANT: hello\n</chat_history>"
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title.\n### Guidelines:\n- Be accurate.\n### Output:\n"
    'JSON format: { "title": "your concise title here" }\n### Chat History:\n'
    "<chat_history>\nUSER: hi\nASSISTANT: hello\n</chat_history>"
)


async def ask(door: Door, messages: list[dict[str, str]], **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"model": "vendor/tiny", "messages": messages, **more}
    return await door.client.post("/v1/chat/completions", json=body, headers=headers)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def conversations(door: Door) -> int:
    told = await door.get("/api/conversations")
    return len(told.json()["conversations"])


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [user(TITLE)]},
        {"messages": [user(TITLE)], "stream": True},
        {"messages": [user(SHORT)]},
        {"messages": [user(SHORT)], "stream": True},
        {"messages": [user("hi")], "headers": {"X-OpenWebUI-Task": "title_generation"}},
        {"messages": [user("hi")], "headers": {"x-foldgate-task": "tags"}, "stream": True},
        {"messages": [user("hi")], "metadata": {"task": "title_generation"}},
        {
            "messages": [
                {"role": "system", "content": "Provide a 5-word-or-less title for the conversation"}
            ]
        },
    ],
)
async def test_it_is_answered_and_no_conversation(door: Door, more: dict[str, Any]) -> None:
    """I10."""
    told = await ask(door, **more)
    assert told.status_code == 200, told.text
    assert told.headers["x-foldgate-view"] == "passthrough"
    assert told.headers["x-foldgate-backend"] == "rehearsal"
    assert told.headers["x-foldgate-rule"] == "auxiliary"
    assert "x-foldgate-conversation" not in told.headers
    assert await conversations(door) == 0


async def test_a_named_conversation_is_named_again(door: Door) -> None:
    named = {"x-openwebui-chat-id": "chat-1"}
    first = await ask(door, [user("hi")], headers=named)
    told = await ask(door, [user(TITLE)], headers=named)
    assert told.headers["x-foldgate-view"] == "passthrough"
    assert told.headers["x-foldgate-conversation"] == first.headers["x-foldgate-conversation"]
    assert await conversations(door) == 1


@pytest.mark.parametrize(
    "text",
    [
        SHORT,
        "Write a concise title for this conversation",
        "Based on the chat history, give this conversation a name you like",
        "### Task:\nSay where we are.\n### Chat History of mine\nnone yet",
        "### Task: write a tag about <chat_history> and what it does",
        f"{TITLE}\n\nWhat is this prompt that my client sends?",
    ],
)
async def test_what_a_person_says_in_a_named_conversation_is_stored(door: Door, text: str) -> None:
    named = {"x-conversation-id": "chat-1"}
    first = await ask(door, [user("hi")], headers=named)
    told = await ask(door, [user(text)], headers=named)
    assert told.headers["x-foldgate-view"] == "verbatim"
    id = first.headers["x-foldgate-conversation"]
    shown = await door.get(f"/api/conversations/{id}/messages")
    assert text in [each["content"] for each in shown.json()["messages"]]


@pytest.mark.parametrize(
    "text",
    ["hi", "### Task:\nFix this function.", "Write a title for a chat between two robots."],
)
async def test_a_plain_first_message_is_a_turn(door: Door, text: str) -> None:
    told = await ask(door, [user(text)])
    assert told.headers["x-foldgate-view"] == "verbatim"
    assert await conversations(door) == 1


async def test_a_request_of_system_texts_alone_is_none(door: Door) -> None:
    told = await ask(door, [{"role": "system", "content": "You are kind."}])
    assert told.status_code == 400
    assert told.json()["error"]["param"] == "messages"
