"""What the clients of the measurement say: requests as bytes, every message a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

TURNS = 20
"""Turns of a conversation before its client begins another one."""

_SAID = (
    "Tell me what the harbour looks like at night, and who is still awake there after the storm."
    " Leave nothing out, please; I want to hear all of it.",
    "昨日の話の続きを聞かせて。灯台の番人は、あの手紙を本当に読んだのでしょうか。それとも捨てたの。"
    "もう一度だけ、最初から教えて。",
    "我记得你说过那把钥匙藏在旧书店的第三个书架后面，可是今天早上我去看的时候已经不在了，"
    "到底是谁把它拿走的呢？你知道吗？",
    "그 사람이 남긴 쪽지를 다시 읽어 봤는데, 마지막 줄의 숫자 417이 무슨 뜻인지 아직 모르겠어."
    " 너는 혹시 기억나?",
    "Помнишь, мы должны были встретиться у моста в девять? Я ждал до полуночи, но никто не пришёл."
    " Почему?",
    "¿Y si la capitana nunca quiso volver? Guardó el mapa 🗺️ y no dijo nada en toda la travesía,"
    " ni una sola palabra a nadie.",
)
_numbers = count()


def message(role: str, number: int) -> dict[str, str]:
    """A message in one of six languages that is said only once."""
    return {"role": role, "content": f"{number}: {_SAID[number % len(_SAID)]}"}


def history(messages: int) -> list[dict[str, str]]:
    """So many messages, user and assistant in turn, the user first; 5,000 are 1 MB of JSON."""
    first = next(_numbers) * 1_000_000
    roles = ("user", "assistant")
    return [message(roles[index % 2], first + index) for index in range(messages)]


def post(messages: list[dict[str, str]], conversation: str = "", *, stream: bool = False) -> bytes:
    """A chat request as bytes of HTTP/1.1."""
    payload = {"model": "foldgate", "stream": stream, "messages": messages}
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    named = f"X-Conversation-Id: {conversation}\r\n" if conversation else ""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{named}\r\n"
    )
    return head.encode() + body


def say() -> dict[str, str]:
    """A user's message that was never said before."""
    return message("user", next(_numbers))


def newest(conversation: str, *, stream: bool = False) -> bytes:
    """A request that sends only what is new, with the conversation's id."""
    return post([say()], conversation, stream=stream)


def name_conversation() -> str:
    return f"bench-{next(_numbers)}"


def turns(*, stream: bool = False) -> Iterator[bytes]:
    """New turns without end, in conversations of TURNS turns."""
    while True:
        conversation = name_conversation()
        for _ in range(TURNS):
            yield newest(conversation, stream=stream)
