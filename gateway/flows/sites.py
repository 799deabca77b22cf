"""What a tier brings to a turn, and the place where its view of a conversation is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from gateway.flows.states import Site, measure
from gateway.store import attempts, fold_rows, token_ratios, transcript
from gateway.store.fold_rows import FoldRow
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import loads
from gateway.wire.requests import SYSTEM_ROLES
from policies.budget import first_ratio, limits_of
from policies.messages import message_chars
from policies.schema import Policy, Rule

System = Sequence[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Setting:
    """The tier a turn runs on. Tokens: window, reserve (kept for the reply), output (asked).

    tools_chars: tools and schemas of the request, which stand in the prompt too. warm: the policies
    of smaller views that are kept ready meanwhile.
    """

    backend: str
    policy: Policy
    model: str
    image_chars: int
    keep_reasoning: bool
    strict_roles: bool
    window: int | None
    reserve: int
    output: int
    tools_chars: int
    revision: str
    boot: str
    first_ratio: float | None = None
    warm: tuple[Policy, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """What may serve requests for one model.

    settings: of its tiers that are switched on, in the file's order. local: backends on this
    machine. usable: backends, of any model, that can be called now. off: why the backends of the
    other tiers are off. minute and day: by the clock of this machine.
    """

    model: str
    is_private: bool
    rules: tuple[Rule, ...]
    settings: tuple[Setting, ...]
    local: frozenset[str]
    usable: frozenset[str]
    off: Mapping[str, str]
    minute: int
    day: str


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a question stands. sample: text to guess characters per token from where no usage
    taught them; ratio: a better guess, if somebody has one."""

    conversation: ConversationRow
    head: Node
    system: System
    sample: str
    now_ms: int
    ratio: float | None = None


def last_system(connection: Connection, conversation_pk: int) -> tuple[System, int | None]:
    """The system texts of a conversation's newest turn, and their row. Other notes of the client's
    were for that turn alone."""
    last = attempts.last_system(connection, conversation_pk)
    if last is None:
        return [], None
    stored = loads(transcript.system_text(connection, last))
    return [(int(at), text) for at, text in stored if text["role"] in SYSTEM_ROLES], last


@dataclass(frozen=True, slots=True)
class Ground:
    """What a tier's view of a head stands on before this turn: the site, the fold that was there,
    characters per token. total: what start is compared with, as it is without a new fold."""

    site: Site
    fold: FoldRow | None
    ratio: float
    total: int


def find_ground(connection: Connection, spot: Spot, setting: Setting) -> Ground:
    """The ground of one tier's view."""
    conversation, head = spot.conversation, spot.head
    ratio = token_ratios.token_ratio(connection, conversation.pk, setting.backend)
    ratio = ratio or setting.first_ratio or spot.ratio or first_ratio(spot.sample)
    fixed = fixed_chars(spot.system, setting)
    site = make_site(conversation, setting, fixed, head, ratio, spot.now_ms)
    fold = fold_rows.deepest_fold(connection, conversation.pk, setting.policy.name, head)
    return Ground(site, fold, ratio, measure(connection, site, fold))


def fixed_chars(system: System, setting: Setting) -> int:
    """System texts, tools and schemas: what no fold can shorten, in characters."""
    texts = sum(message_chars(message, setting.image_chars) for _, message in system)
    return texts + setting.tools_chars


def make_site(
    conversation: ConversationRow,
    setting: Setting,
    fixed: int,
    head: Node,
    ratio: float,
    now_ms: int,
) -> Site:
    """A window too small for the policy narrows its numbers in proportion."""
    room = None
    if setting.window is not None:
        tokens = round(fixed / ratio)
        room = setting.window - setting.reserve - tokens - margin_of(setting.window)
    limits = limits_of(setting.policy, ratio, room)
    return Site(conversation, setting.policy, limits, head, setting.revision, now_ms)


def margin_of(window: int) -> int:
    """Tokens kept free for what an estimate misses (template marks): 2 %, 64 at least."""
    return max(64, window // 50)
