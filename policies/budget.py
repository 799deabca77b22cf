"""Budgets: a policy's numbers in characters, and what characters cost in tokens.

Characters do not bound tokens: 48,000 characters of Chinese are 21k to 51k tokens, of emoji up
to 122k, of English 11k (design, "Numbers"). So each conversation learns its characters per
token from usage figures, and the window is checked in tokens before every call.
"""

import math
from collections import Counter
from dataclasses import replace
from functools import lru_cache

from policies.schema import Policy, View
from policies.values import Limits

RATIO_LEAST = 0.25
RATIO_MOST = 8.0
"""Bounds of a learned ratio: emoji go down to 0.39 characters a token, plain English stays
below 5; a figure beyond these is an error of the backend (0, an image's cost, a cut prompt)."""

OUTPUT_FLOOR = 256
"""Tokens: the least room for a reply with which a call is worth making."""

WORST_LANGUAGE = 0.9
"""Characters per token of the dearest languages, Chinese and Japanese (Korean: about as dear). A
text of emoji alone is dearer still, but nobody talks in them for long."""

LEAST_READ = 0.3
"""The share of a prompt's estimated tokens below which a backend cannot have read all of it: first
guesses are cautious, and tokenizers differ by a factor of two on one script."""

MESSAGE_CHARS = 500
"""Characters of a message of common length, a rough figure: between a line of small talk and a
paragraph of narration."""

_UNIT_CHARS = {"chars": 1, "tokens": 3, "messages": MESSAGE_CHARS}

SHARES = 10
"""Profile and ledger are each at most this part of what a fold leaves."""

_ALARM_FROM = 1_000
_LEARNING = 0.3
_STRAY = 2.0
_SAMPLE = 20_000


def limits_of(policy: Policy, ratio: float, room: int | None = None) -> Limits:
    """The policy's numbers in characters, at ``ratio`` characters per token; those of a view that
    counts messages in messages.

    ``room``: the tokens of the window left for memory and verbatim (see ``view_room``), None
    where it has no bound. A view that would overflow it is narrowed in proportion, so that it
    folds in good time instead of being cut at the window.
    """
    view = policy.view
    scale = ratio if view.unit == "tokens" else 1.0
    ceiling = view.ceiling * scale
    if room is not None and room > 0 and view.unit != "messages":
        scale *= min(1.0, room * ratio / ceiling)
    return _limits_at(policy, scale)


@lru_cache(maxsize=1_024)
def _limits_at(policy: Policy, scale: float) -> Limits:
    """Kept: the same for each turn of nearly all conversations, and a tenth of what planning
    costs where nothing is to be folded."""
    view = policy.view
    bare = Limits(
        start=int(view.start * scale),
        ceiling=int(view.ceiling * scale),
        headroom=int(view.headroom * scale),
        keep=int(view.keep * scale),
        split=policy.chapters.split,
        length=policy.chapters.length,
        stack=policy.chapters.stack,
        gist_length=policy.gist.length,
        rolling=policy.memory == "rolling",
        messages=view.unit == "messages",
    )
    return _with_shares(policy, bare)


def _with_shares(policy: Policy, bare: Limits) -> Limits:
    """The limits with what may stand beside the chapters: profile and ledger a tenth each of what
    a fold leaves, documents what is left of it beside all else, and pins a part of what ledger and
    documents have. Where messages are counted what a fold leaves is reckoned as so many of common
    length."""
    if bare.messages:
        bare, counted = _in_chars(bare), bare
        shared = _with_shares(policy, bare)
        names = ("profile", "ledger", "documents", "pins")
        shares = {name: getattr(shared, name) for name in names}
        return replace(counted, stack=shared.stack, **shares)
    # The stack never fills what a fold leaves: beside it and the gist there is room for `keep`.
    most = max(bare.length, bare.goal - bare.keep - bare.gist_length)
    bare = replace(bare, stack=min(bare.stack, most))
    tenth = bare.goal // SHARES
    profile = min(policy.profile.length, tenth)
    ledger = min(policy.ledger.length, tenth)
    told = bare.gist_length + bare.stack + profile + ledger
    documents = max(0, bare.goal - bare.keep - told)
    pins = min(policy.ledger.pins, documents + ledger)
    return replace(bare, profile=profile, ledger=ledger, documents=documents, pins=pins)


def _in_chars(limits: Limits) -> Limits:
    sizes = {
        name: getattr(limits, name) * MESSAGE_CHARS
        for name in ("start", "ceiling", "headroom", "keep")
    }
    return replace(limits, messages=False, **sizes)


def is_smaller(view: View, other: View) -> bool:
    """Whether a view holds less than another; one that counts tokens is reckoned with three
    characters to a token, one that counts messages with 500 to a message."""
    return _chars(view) < _chars(other)


def _chars(view: View) -> int:
    return view.ceiling * _UNIT_CHARS[view.unit]


def first_ratio(text: str) -> float:
    """A cautious first guess of characters per token, from the scripts of a text.

    A long text is sampled. Latin letters are taken as 3 to a token (about 4 measured), CJK as
    0.9, emoji as 0.39 (measured with cl100k), other scripts as 1.5. Without any text: 3.
    """
    if len(text) > _SAMPLE:
        step = len(text) // (_SAMPLE // 100)
        text = "".join(text[at : at + 100] for at in range(0, len(text), step))
    tokens = sum(count / _script_ratio(letter) for letter, count in Counter(text).items())
    return len(text) / tokens if tokens else 3.0


@lru_cache(maxsize=8_192)
def _script_ratio(letter: str) -> float:
    code = ord(letter)
    if code < 0x250:
        return 3.0
    if code >= 0x1F000 or 0x2190 <= code < 0x2C00 or code in (0x200D, 0xFE0F):
        return 0.39 if not 0x20000 <= code < 0x40000 else 0.9
    if 0x2E80 <= code < 0xD800 or 0xF900 <= code < 0xFB00 or code >= 0xFF00:
        return 0.9
    if 0x370 <= code < 0x530 or 0x2000 <= code < 0x2190:
        return 2.0
    return 1.0


def learn_ratio(old: float | None, chars: int, tokens: int | None) -> float | None:
    """The characters per token after one more usage figure of a whole prompt.

    A missing, zero or impossible figure changes nothing; one far from what is known moves it by
    a bounded step only, so that one odd figure does little and a real change is followed.
    """
    if not tokens or tokens < 0 or chars <= 0:
        return old
    seen = chars / tokens
    if not RATIO_LEAST <= seen <= RATIO_MOST:
        return old
    if old is None:
        return seen
    near = min(max(seen, old / _STRAY), old * _STRAY)
    return min(max(old + _LEARNING * (near - old), RATIO_LEAST), RATIO_MOST)


def estimate_tokens(chars: int, ratio: float) -> int:
    """What so many characters cost in tokens, rounded up."""
    return math.ceil(chars / ratio)


def is_half_read(chars: int, ratio: float, tokens: int | None) -> bool:
    """Whether a backend that says it read so many tokens cut the prompt behind our back.

    Prompts of less than 1,000 estimated tokens fit every window, and tell nothing.
    """
    if not tokens:
        return False
    estimate = estimate_tokens(chars, ratio)
    return estimate >= _ALARM_FROM and tokens < LEAST_READ * estimate


def tell_narrowing(policy: Policy, window: int | None) -> str | None:
    """What becomes of the policy's ceiling in a window (tokens of one slot) that does not hold it
    in every language, as a sentence; None where it holds it, or has no bound."""
    view = policy.view
    if view.unit == "messages":
        return None  # nobody can know how long they will be; each call is checked in tokens
    tokens = view.ceiling
    if view.unit == "chars":
        tokens = estimate_tokens(view.ceiling, WORST_LANGUAGE)
    if window is None or tokens <= window:
        return None
    return (
        f"a ceiling of {view.ceiling:,} {view.unit} is up to {tokens:,} tokens in Chinese or"
        f" Japanese, and a conversation's window is {window:,}: there views shrink and fold earlier"
    )


def find_narrowed(policy: Policy) -> list[str]:
    """A sentence for each written size of the memory that a view never shows in full, in the order
    of the file. Defaults that a small view narrows are no surprise to anybody."""
    found: list[str] = []
    limits, recall = limits_of(policy, _UNIT_CHARS["tokens"]), policy.recall
    written = recall.model_fields_set & {"budget", "between_folds"}
    if written and recall.budget > recall.between_folds:
        found.append(
            f"recall.budget {recall.budget:,} is above recall.between_folds: a message is shown "
            f"{recall.between_folds:,} characters of notes at most"
        )
    ceiling = _chars(policy.view)
    if written and recall.budget > ceiling:
        found.append(
            f"recall.budget {recall.budget:,} is above view.ceiling, which is {ceiling:,} "
            "characters: notes are shown only where the view has room for them"
        )
    for part, shown in (("ledger", limits.ledger), ("profile", limits.profile)):
        length = getattr(policy, part).length
        if "length" in getattr(policy, part).model_fields_set and shown < length:
            found.append(
                f"{part}.length {length:,} is more than a tenth of what a fold leaves (view.start "
                f"− view.headroom): {shown:,} characters are shown at most"
            )
    pins = policy.ledger.pins
    if "pins" in policy.ledger.model_fields_set and limits.pins < pins:
        found.append(
            f"ledger.pins {pins:,} is more than documents and ledger.length have together: "
            f"{limits.pins:,} characters are shown at most"
        )
    return found


def view_room(window: int | None, fixed_tokens: int, max_output: int, margin: int) -> int | None:
    """The tokens that system text, tools, reply and margin leave for memory and verbatim.

    None: no bound. It may be 0 or less: then what is fixed does not fit and no fold helps.
    """
    return None if window is None else window - fixed_tokens - max_output - margin


def output_room(
    prompt_tokens: int, asked: int | None, margin: int, window: int | None
) -> int | None:
    """The ``max_tokens`` that may be sent: the asked ones, or fewer where the window is near.

    ``asked`` is the client's number, else the backend's; None: none is set, and the room itself
    is returned. Less room than ``OUTPUT_FLOOR``, or than a smaller number asked for, is an
    overflow: OverflowError. None: no number need be sent (no window, none asked).
    """
    if window is None:
        return asked
    room = window - prompt_tokens - margin
    least = OUTPUT_FLOOR if asked is None else min(OUTPUT_FLOOR, asked)
    if room < least:
        raise OverflowError(f"{room} tokens are left for the reply, {least} are the least")
    return room if asked is None else min(asked, room)
