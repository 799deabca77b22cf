"""One choice of a reply put together from its pieces: text, thinking, calls of tools, the rest."""

from collections.abc import Sequence
from typing import Any

from gateway.wire.json_text import dumps, loads
from gateway.wire.letters import is_blank, join_surrogates
from gateway.wire.thinking import split_thinking


class ChoiceBuilder:
    """One choice of an answer."""

    __slots__ = (
        "_calls",
        "_content",
        "_content_seen",
        "_function",
        "_logprobs",
        "_other",
        "_read",
        "_reasoning",
        "_refusal",
        "finish_reason",
    )

    def __init__(self) -> None:
        self._content: list[str] = []
        self._content_seen = False
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._function: dict[str, Any] | None = None
        self._other: dict[str, Any] = {}
        self._logprobs: dict[str, list[Any]] | None = None
        self._read: tuple[str, str] | None = None
        self.finish_reason: str | None = None

    def feed(self, choice: dict[str, Any], part: str) -> None:
        """Take one choice of a chunk (part: `delta`) or of a whole answer (`message`)."""
        finish_reason = choice.get("finish_reason")
        if finish_reason and self.finish_reason is None and isinstance(finish_reason, str):
            self.finish_reason = finish_reason
        if (logprobs := choice.get("logprobs")) and isinstance(logprobs, dict):
            self._feed_logprobs(logprobs)
        delta = choice.get(part)
        if not delta:
            return
        self._read = None
        content = delta.get("content")
        if len(delta) == 1 and type(content) is str:  # as nearly all are
            self._content_seen = True
            self._content.append(content)
            return
        for key, value in delta.items():
            if value is not None:
                take = _TAKERS.get(key)
                if take is not None:
                    take(self, value)
                elif key == "reasoning" and delta.get("reasoning_content"):
                    continue  # some servers send the same piece under both names
                else:
                    self._feed_other(key, value)

    def feed_texts(self, texts: Sequence[str]) -> None:
        """Take pieces of text that came alone, in order."""
        self._read = None
        self._content_seen = True
        self._content.extend(texts)

    def _feed_logprobs(self, logprobs: dict[str, Any]) -> None:
        if self._logprobs is None:
            self._logprobs = {}
        for key, value in logprobs.items():
            if isinstance(value, list):
                self._logprobs.setdefault(key, []).extend(value)

    def _feed_nothing(self, value: Any) -> None:
        """The role: a reply is the assistant's."""

    def _feed_reasoning(self, value: Any) -> None:
        self._reasoning.extend(_texts(value))

    def _feed_refusal(self, value: Any) -> None:
        self._refusal.extend(_texts(value))

    def _feed_calls(self, pieces: Any) -> None:
        for piece in pieces:
            self._feed_call(piece)

    def _feed_content(self, value: Any) -> None:
        self._content_seen = True
        if isinstance(value, str):
            self._content.append(value)
            return
        for part in value:
            if part.get("type") == "thinking":
                self._reasoning.extend(_texts(part.get("thinking")))
            else:
                self._content.extend(_texts(part))

    def _feed_call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or {}
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = dumps(arguments)
        call = self._find_call(piece)
        if call is None:
            call = {"id": piece.get("id"), "type": "function", "index": piece.get("index")}
            call["function"] = {"name": "", "arguments": []}
            self._calls.append(call)
        elif _is_repeated(call, piece, arguments):
            return
        call["id"] = call["id"] or piece.get("id")
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        if arguments:
            call["function"]["arguments"].append(arguments)
        for key, value in piece.items():
            if value is not None and key not in ("id", "index", "function"):
                call[key] = value

    def _find_call(self, piece: dict[str, Any]) -> dict[str, Any] | None:
        """The call that a piece goes on with: by id, then by index, then the newest one.

        An id that differs from the one at its index begins a new call: some providers number all
        parallel calls 0.
        """
        id_, index = piece.get("id"), piece.get("index")
        if id_:
            for call in self._calls:
                if call["id"] == id_:
                    return call
        if index is None:
            return self._calls[-1] if self._calls and not id_ else None
        for call in reversed(self._calls):
            if call["index"] == index:
                return None if id_ and call["id"] else call
        return None

    def _feed_function(self, piece: dict[str, Any]) -> None:
        if self._function is None:
            self._function = {"name": "", "arguments": ""}
        self._function["name"] = self._function["name"] or piece.get("name") or ""
        self._function["arguments"] += piece.get("arguments") or ""

    def _feed_audio(self, piece: dict[str, Any]) -> None:
        audio = self._other.setdefault("audio", {})
        for key, value in piece.items():
            if key in ("data", "transcript") and isinstance(value or "", str):
                audio[key] = audio.get(key, "") + (value or "")
            elif value is not None:
                audio[key] = value

    def _feed_other(self, key: str, value: Any) -> None:
        if key == "reasoning":
            self._feed_reasoning(value)
        elif isinstance(value, list):
            if not isinstance(self._other.get(key), list):
                self._other[key] = []
            self._other[key].extend(value)
        else:
            self._other[key] = value

    def read(self) -> tuple[str, str]:
        """(text, reasoning) with leaked thinking moved to where it belongs."""
        if self._read is None:
            thinking, text = split_thinking(join_surrogates("".join(self._content)))
            reasoning = join_surrogates("".join(self._reasoning))
            parts = [part for part in (reasoning, thinking) if part]
            self._read = text, "\n".join(parts)
        return self._read

    @property
    def is_empty(self) -> bool:
        if self._calls or self._function or any(self._refusal) or self._other.get("audio"):
            return False
        text, reasoning = self.read()
        return is_blank(text) and is_blank(reasoning) and not self._other.get("images")

    @property
    def broken_tools(self) -> bool:
        return any(self._is_broken("".join(c["function"]["arguments"])) for c in self._calls) or (
            self._function is not None and self._is_broken(self._function["arguments"])
        )

    def _is_broken(self, arguments: str) -> bool:
        if not arguments:
            return self.finish_reason == "length"
        return not _is_json(arguments)

    def message(self) -> dict[str, Any]:
        """As ReplyBuilder.message."""
        return self._build(*self.read())

    def close(self) -> dict[str, Any]:
        """The fields of a choice of a whole answer, its message as the upstream sent it."""
        text = join_surrogates("".join(self._content))
        reasoning = join_surrogates("".join(self._reasoning))
        choice = {"message": self._build(text, reasoning), "finish_reason": self.finish_reason}
        return choice if self._logprobs is None else {**choice, "logprobs": self._logprobs}

    def _build(self, text: str, reasoning: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant"}
        message["content"] = text if self._content_seen else None
        if reasoning:
            message["reasoning_content"] = reasoning
        if any(self._refusal):
            message["refusal"] = join_surrogates("".join(self._refusal))
        if self._calls:
            message["tool_calls"] = [_close_call(call) for call in self._calls]
        if self._function:
            message["function_call"] = dict(self._function)
        if message["content"] is None and len(message) == 2:
            message["content"] = ""
        return message | self._other


_TAKERS = {
    "role": ChoiceBuilder._feed_nothing,
    "content": ChoiceBuilder._feed_content,
    "reasoning_content": ChoiceBuilder._feed_reasoning,
    "refusal": ChoiceBuilder._feed_refusal,
    "tool_calls": ChoiceBuilder._feed_calls,
    "function_call": ChoiceBuilder._feed_function,
    "audio": ChoiceBuilder._feed_audio,
}


def _close_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = join_surrogates("".join(function["arguments"]))
    closed = {key: value for key, value in call.items() if key != "index" and value is not None}
    return closed | {"function": {"name": function["name"], "arguments": arguments}}


def _is_repeated(call: dict[str, Any], piece: dict[str, Any], arguments: str) -> bool:
    """Whether a piece is a finished call sent a second time, whole."""
    name = (piece.get("function") or {}).get("name")
    if not name or not arguments or name != call["function"]["name"]:
        return False
    return arguments == "".join(call["function"]["arguments"]) and _is_json(arguments)


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _texts(value: Any) -> list[str]:
    """The texts of a content part, or of a list of such parts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    text = value.get("text") if isinstance(value, dict) else None
    return [text] if isinstance(text, str) else []
