"""Who is asking: from a request's headers to an owner, and what of the store it may see.

Plain functions over the request; what they need hangs on `app.state` (`context`, `keyring`).
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from sqlalchemy import Connection

from gateway.api.bodies import read_flag
from gateway.errors import BadRequest, NotFound, Unauthorized
from gateway.flows.context import Context
from gateway.settings import Settings
from gateway.store import conversations
from gateway.store.callings import find_called
from gateway.store.transcript import ConversationRow

LOCAL = "local"
_USER = re.compile(r"[A-Za-z0-9._:@+-]{1,256}")
_USER_LIMIT = 256
# As gateway.wire.requests.check_id allows them; whatever else is asked for cannot exist.
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
_WHOLE = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Owner:
    """The name of a key's owner and the forwarded user ("" where none is forwarded)."""

    name: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a request may see: one owner's conversations, or everybody's (owner is None)."""

    owner: Owner | None


class Keyring:
    """Which owner a key belongs to. Keys are held and looked up as digests only, so that the
    time of a look-up tells nothing about a key."""

    def __init__(self, keys: Mapping[str, str], admin_key: str | None) -> None:
        self._owners = {_digest(key): owner for key, owner in keys.items()}
        self._admin = None if admin_key is None else _digest(admin_key)

    @classmethod
    def of(cls, settings: Settings) -> Keyring:
        return cls(settings.keys, settings.admin_key)

    def owner(self, key: str) -> str | None:
        """The owner's name; without any keys (loopback only) everybody is `local`."""
        if not self._owners:
            return LOCAL
        return self._owners.get(_digest(key)) if key else None

    def is_admin(self, key: str) -> bool:
        return bool(key) and self._admin is not None and _digest(key) == self._admin


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def context_of(request: Request) -> Context:
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


def request_id_of(request: Request) -> str:
    return str(request.state.request_id)


def presented_key(request: Request) -> str:
    """The key in `Authorization: Bearer` or `x-api-key`; "" where there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return request.headers.get("x-api-key", "").strip()


def resolve_owner(request: Request) -> Owner:
    """The owner whom this request speaks for, by its headers alone.

    Raises Unauthorized for an absent or unknown key, BadRequest for a user that no header carries.
    """
    keyring = _keyring(request)
    key = presented_key(request)
    name = keyring.owner(key)
    if name is None:
        raise _unauthorized(key)
    return Owner(name, _forwarded_user(request))


def speaking_for(owner: Owner, user: str) -> Owner:
    """The owner with a user who is named beside the headers (the `user` of a chat request): one
    that was forwarded counts before it. Raises BadRequest."""
    return owner if owner.user or not user else Owner(owner.name, _checked_user(user))


def resolve_scope(request: Request) -> Scope:
    """Whose conversations this request under /api may see.

    An owner's key sees its own with those of all its users, or one user's (header or `?user=`). The
    admin key sees all, or those that `?owner=` and `?user=` name. Raises BadRequest where another
    key names an owner that is not its own, whether there is one or not.
    """
    user = request.query_params.get("user", "")
    name = request.query_params.get("owner", "")
    key = presented_key(request)
    if _keyring(request).is_admin(key):
        user = _forwarded_user(request) or _checked_user(user)
        if user and not name:
            raise BadRequest("`user` needs `owner` beside it.", param="owner")
        return Scope(Owner(name, user) if name else None)
    owner = resolve_owner(request)
    if name not in ("", owner.name):
        raise BadRequest(
            f"`owner` is for the admin key; this request speaks for {owner.name}.", param="owner"
        )
    return Scope(speaking_for(owner, user))


def is_stranger(request: Request) -> bool:
    """Whether someone asks from elsewhere, or through a proxy, without a key that is known here."""
    key = presented_key(request)
    keyring = _keyring(request)
    if keyring.owner(key) is not None or keyring.is_admin(key):
        return False
    client = request.client
    if client is None or any(name in request.headers for name in _FORWARDED):
        return True
    try:
        return not ipaddress.ip_address(client.host).is_loopback
    except ValueError:
        return True


def find_in_scope(connection: Connection, scope: Scope, id: str) -> ConversationRow:
    """The conversation of that id (or client's alias). NotFound, in the same words, where it is
    unknown and where it is another owner's; Conflict where several users of the owner call one so
    and the request names none of them."""
    row: ConversationRow | None = None
    if _ID.fullmatch(id):
        if scope.owner is None:
            row = conversations.find_anywhere(connection, id)
        else:
            row = find_called(connection, scope.owner.name, scope.owner.user, id)
    if row is None:
        raise NotFound("There is no conversation of this id.")
    return row


async def check_in_scope(request: Request, scope: Scope, id: str) -> None:
    """Another's conversation is a 404, whatever a body says: asked before the body is read."""
    await context_of(request).store.read(find_in_scope, scope, id)


def owner_pks_in_scope(connection: Connection, scope: Scope) -> list[int] | None:
    """The owners' row numbers (none for one who never spoke); None for everybody."""
    if scope.owner is None:
        return None
    return conversations.owners_named(connection, scope.owner.name, scope.owner.user)


def read_limit(request: Request, *, default: int = 100, most: int = 1_000) -> int:
    """`?limit=`, a whole number from 1. More than `most` and anything else is a BadRequest."""
    text = request.query_params.get("limit")
    if text is None:
        return default
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
        raise BadRequest(f"`limit` must be a whole number from 1 to {most:,}.", param="limit")
    return int(text)


def read_now(request: Request, told: Mapping[str, Any]) -> bool:
    """Whether a change is wanted at the next user message: `now`, in the body or as `?now=true`."""
    in_address = request.query_params.get("now", "false")
    if in_address not in ("true", "false"):
        raise BadRequest("`now` must be true or false.", param="now")
    return read_flag(told, "now") or in_address == "true"


def read_id(request: Request, name: str) -> str | None:
    """A query parameter that names a message or a place; None where it is absent or empty."""
    text = request.query_params.get(name, "")
    if text and not _ID.fullmatch(text):
        raise BadRequest(f"`{name}` is not an id.", param=name)
    return text or None


def read_place(request: Request) -> conversations.Place | None:
    """`?after=`, the `next` of the page before; None where it is absent or empty."""
    text = request.query_params.get("after", "")
    if not text:
        return None
    try:
        return conversations.Place.parse(text)
    except ValueError:
        raise BadRequest("`after` must be the `next` of the page before.", param="after") from None


def _keyring(request: Request) -> Keyring:
    keyring = request.app.state.keyring
    assert isinstance(keyring, Keyring)
    return keyring


def _unauthorized(key: str) -> Unauthorized:
    if key:
        return Unauthorized("This API key is not known here.")
    return Unauthorized("An API key is needed: send it as `Authorization: Bearer KEY`.")


def _forwarded_user(request: Request) -> str:
    for header in context_of(request).settings.user_headers:
        value = request.headers.get(header)
        if value:
            if not _USER.fullmatch(value):
                raise BadRequest(
                    f"`{header}` must be 1 to 256 characters out of A-Z a-z 0-9 . _ : @ + -",
                    param=header,
                )
            return value
    return ""


def _checked_user(user: str) -> str:
    if len(user) > _USER_LIMIT or not user.isprintable():
        raise BadRequest("`user` must be at most 256 printable characters.", param="user")
    return user
