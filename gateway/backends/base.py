"""What a backend is to the flows: one call in, chunks or a whole answer out, faults by one name.

A backend never retries and never chooses another backend: one owner of retries stands above it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gateway.wire.json_text import loads
from gateway.wire.replies import ReplyBuilder
from policies.masking.kinds import Kind

Purpose = Literal["chat", "summary", "gist", "auxiliary", "prefill"]


@dataclass(slots=True)
class Trace:
    """What a backend learned about one call while it made it; seconds, None where it cannot tell.

    slot: of llama-server; is_own: nobody else was served in it since this conversation was.
    queued: waited for a slot inside the gateway. first_token: from the moment the request left the
    queue to the first piece of the reply.
    """

    slot: int | None = None
    is_own: bool | None = None
    queued: float | None = None
    first_token: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model, final in every byte.

    `messages` are JSON objects in UTF-8, one each, as the view made them; they are joined, not
    parsed. `params` are the client's other fields, without `messages` and `stream`; each backend
    passes what may pass. `max_tokens` is always sent. `conversation` says whose prompt this is (a
    text that stays the same, None for nobody's): slots belong to conversations. `stable`: so many
    messages in front (system texts, memory) stay as they are until the next fold. `prompt_chars`:
    of the prompt; `unread_chars`: of these, what a server that served this conversation before
    should not hold yet; None where nobody knows. `deadline`: the event loop's seconds at which a
    client would give up; by then a whole answer has ended, and a streamed one waits in no line of
    the gateway's. `mask`: what a model off this machine gets placeholders for. `trace` is filled in
    by the backend.
    """

    messages: tuple[bytes, ...]
    params: dict[str, Any]
    stream: bool
    max_tokens: int
    purpose: Purpose
    request_id: str
    conversation: str | None = None
    stable: int = 0
    prompt_chars: int | None = None
    unread_chars: int | None = None
    deadline: float | None = None
    mask: tuple[Kind, ...] = ()
    trace: Trace = field(default_factory=Trace, compare=False)

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be at least 1")


class Chunk:
    """One `chat.completion.chunk`. `data` is its JSON as it came where nothing had to be changed;
    `parsed` is the same object decoded (not to be modified). `text` is a piece of the first
    choice's text where the chunk brings nothing else; None says nothing."""

    __slots__ = ("_parsed", "data", "text")

    def __init__(
        self, data: bytes, parsed: dict[str, Any] | None = None, text: str | None = None
    ) -> None:
        """parsed: None to have it decoded when somebody asks, which few do of mere text."""
        self.data = data
        self.text = text
        self._parsed = parsed

    @property
    def parsed(self) -> dict[str, Any]:
        if self._parsed is None:
            self._parsed = loads(self.data)
        return self._parsed

    def feed(self, reply: ReplyBuilder) -> None:
        """Put it to what came of its reply before."""
        if self.text is None:
            reply.feed(self.parsed)
        else:
            reply.feed_texts((self.text,))


@dataclass(frozen=True, slots=True)
class Completion:
    """One whole `chat.completion`: its JSON and the same object decoded (not to be modified)."""

    data: bytes
    parsed: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a call has a chance now; `reason` says why not, in words for the console."""

    ok: bool
    reason: str = ""


class SlotCare(Protocol):
    """The slots of a server that keeps the prompts of conversations.

    `cautions`: what is unsafe or unwise in how the server was started, in words for people, as far
    as `check` found; `is_checked`: whether it has been asked. `when_refused` is called for each
    call that found the line full.
    """

    cautions: tuple[str, ...]
    is_checked: bool
    when_refused: Callable[[], None]

    def waiting(self) -> int:
        """Chats and auxiliary requests that wait for a slot."""

    def in_flight(self) -> int:
        """Slots at work for this program."""

    async def check(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Ask the server how it was started. is_alone: nobody but this program uses the server, so
        that a slot which no conversation owns may be overwritten. Raises UpstreamFault."""

    def restore(self, owners: Mapping[int, str]) -> None:
        """Which conversation was served last in each slot, before this program began."""

    def forget(self, conversation: str) -> None:
        """A conversation was deleted: what may hold it serves nobody until `wipe` has been."""

    @property
    def is_dirty(self) -> bool:
        """Whether slots wait to be wiped and serve nobody until then."""

    async def wipe(self) -> None:
        """Overwrite what deleted conversations left. Raises UpstreamFault: call it again later."""


class Backend(Protocol):
    """A model that answers chat calls.

    `local`: runs on this machine, so that a private conversation may go there. `image_chars`: what
    an image costs in characters of budget. `window_tokens`: the last known window, None if never
    learned. `off_reason`: why the backend is off (its key is missing), None when it is on.
    `can_prefill`: whether `prefill` does anything.
    """

    name: str
    kind: str
    local: bool
    image_chars: int
    window_tokens: int | None
    off_reason: str | None
    can_prefill: bool

    @property
    def slot_care(self) -> SlotCare | None:
        """The care for its slots, None where nobody but the provider knows of any."""

    async def start(self) -> None:
        """Open what calls need. Never contacts the model; safe to call twice."""

    async def aclose(self) -> None:
        """Close every connection; calls in flight end with a fault."""

    async def health(self) -> Health:
        """Ask whether the model can answer. Cached briefly; never raises."""

    async def window(self) -> int | None:
        """The window of one slot in tokens, read from the server where it tells; None if unknown.
        Never raises."""

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        """The exact prompt tokens of these messages by the model's own template, or None where the
        backend cannot count; `params` (tools, chat_template_kwargs) change the count.
        Never raises."""

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        """The names in `params` that this backend will not pass on, sorted."""

    def stream(self, call: Call) -> AsyncIterator[Chunk]:
        """Chunks as they come, each finished choice ended by one true finish_reason.

        An async generator: `aclose()` and cancellation close the upstream connection at once, also
        before the first byte. Leading chunks without substance (a role, blank text) are held until
        something follows, so that an empty answer is a fault before anything was given.
        Raises UpstreamFault; `partial` on it says that chunks had been given.
        """

    async def complete(self, call: Call) -> Completion:
        """The whole answer. Cancellation closes the upstream connection at once.
        Raises UpstreamFault."""

    async def prefill(self, call: Call) -> bool:
        """Have a prompt read in ahead of the turn that will need it; nothing of the answer is
        kept. True once it was read, False where it gave way to a chat or nothing is read ahead
        here. Waits behind everybody else; cancellation ends it at once. Raises UpstreamFault."""
