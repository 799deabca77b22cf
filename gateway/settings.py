"""What the environment and the command line decide before anything is built."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gateway.errors import ConfigurationError
from policies.schema import parse_duration

DEFAULT_DATABASE = "sqlite:///foldgate.db"
DEFAULT_PORT = 8400
# 2 MB messages and a few base64 images fit; a body beyond that is refused before it is parsed.
DEFAULT_BODY_LIMIT = 64 * 1024 * 1024
# Clients' own names for a conversation (facts of the field), looked up case-insensitively.
CONVERSATION_HEADERS = (
    "x-conversation-id",
    "x-openwebui-chat-id",
    "x-session-id",
    "x-litellm-session-id",
    "x-librechat-conversation-id",
)
# OpenAI's own clients give up after 600 s of silence: whoever waits is told before.
DEFAULT_PATIENCE = 570.0
# Nearly every reply is whole by then; what still streams is stored as far as it came.
DEFAULT_GRACE = 120.0
# A summary that is nearly done is not thrown away; a longer one begins anew elsewhere.
DEFAULT_DRAIN = 10.0
TASK_HEADERS = ("x-foldgate-task", "x-openwebui-task")
USER_HEADERS = ("x-openwebui-user-id", "x-librechat-user-id", "x-foldgate-user")


@dataclass(frozen=True)
class Settings:
    """Frozen settings of one process.

    keys maps an API key to its owner's name; empty on loopback means that everybody is `local`.
    patience_seconds: by then a whole reply is there, or its client is told that it is not; nobody
    stands in a line for longer. grace_seconds: what turns under way get to end in when the program
    is told to stop, drain_seconds: what summaries get. log: the form of the program's log. traces:
    where OpenTelemetry's spans go. Sizes in bytes, times in seconds.
    """

    policies: Path = Path("policies.yaml")
    database_url: str = DEFAULT_DATABASE
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    admin_key: str | None = field(default=None, repr=False)
    synchronous: str = "NORMAL"
    body_limit: int = DEFAULT_BODY_LIMIT
    ping_seconds: float = 12.0
    hold_seconds: float = 10.0
    patience_seconds: float = DEFAULT_PATIENCE
    grace_seconds: float = DEFAULT_GRACE
    drain_seconds: float = DEFAULT_DRAIN
    conversation_headers: tuple[str, ...] = CONVERSATION_HEADERS
    user_headers: tuple[str, ...] = USER_HEADERS
    task_headers: tuple[str, ...] = TASK_HEADERS
    log: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    traces: Literal["off", "otlp"] = "off"
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_keys(text: str) -> dict[str, str]:
    """`owner=key,owner=key` as {key: owner}.

    Raises ConfigurationError on a part without `=`, an empty half, or a key given twice.
    No key is repeated in the message.
    """
    keys: dict[str, str] = {}
    for number, part in enumerate(filter(None, (p.strip() for p in text.split(","))), start=1):
        owner, found, key = part.partition("=")
        owner, key = owner.strip(), key.strip()
        if not found or not owner or not key:
            raise ConfigurationError(
                f"FOLDGATE_KEYS: part {number} is not owner=key; write owner=key,owner=key"
            )
        if key in keys:
            raise ConfigurationError(f"FOLDGATE_KEYS: part {number} repeats an earlier key")
        keys[key] = owner
    return keys


_CHOICES = {
    "log": ("text", "json"),
    "log_level": ("debug", "info", "warning", "error"),
    "traces": ("off", "otlp"),
}


def _choice(name: str, word: str) -> str:
    if word not in _CHOICES[name]:
        allowed = ", ".join(_CHOICES[name])
        raise ConfigurationError(f"FOLDGATE_{name.upper()} must be one of {allowed}")
    return word


def _duration(variable: str, *, least: float) -> Callable[[str], float]:
    """A reader of durations of at least so many seconds."""

    def read(text: str) -> float:
        try:
            seconds = parse_duration(text)
        except ValueError:
            seconds = -1.0
        if seconds < least:
            raise ConfigurationError(f"{variable} must be a duration such as 570s or 9.5m")
        return seconds

    return read


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "FOLDGATE_POLICIES": ("policies", Path),
    "FOLDGATE_DATABASE_URL": ("database_url", str),
    "FOLDGATE_KEYS": ("keys", parse_keys),
    "FOLDGATE_ADMIN_KEY": ("admin_key", str),
    "FOLDGATE_PATIENCE": ("patience_seconds", _duration("FOLDGATE_PATIENCE", least=0.001)),
    "FOLDGATE_GRACE": ("grace_seconds", _duration("FOLDGATE_GRACE", least=0.0)),
    "FOLDGATE_DRAIN": ("drain_seconds", _duration("FOLDGATE_DRAIN", least=0.0)),
}


def read_settings(environ: Mapping[str, str], **overrides: object) -> Settings:
    """Settings from environment variables; overrides (from flags) win where not None.

    Raises ConfigurationError when the result would serve strangers without keys.
    """
    values: dict[str, object] = {"environ": dict(environ)}
    for variable, (name, read) in _READERS.items():
        if text := environ.get(variable):
            values[name] = read(text)
    if mode := environ.get("FOLDGATE_SYNCHRONOUS"):
        if mode.upper() not in {"NORMAL", "FULL"}:
            raise ConfigurationError("FOLDGATE_SYNCHRONOUS must be NORMAL or FULL")
        values["synchronous"] = mode.upper()
    for name in _CHOICES:
        if word := environ.get(f"FOLDGATE_{name.upper()}"):
            values[name] = _choice(name, word.lower())
    values.update({name: value for name, value in overrides.items() if value is not None})
    settings = Settings(**values)  # type: ignore[arg-type]
    if not settings.loopback and not settings.keys:
        raise ConfigurationError(
            f"{settings.host} can be reached from other machines: set FOLDGATE_KEYS=owner=key,… "
            "or bind to 127.0.0.1"
        )
    return settings
