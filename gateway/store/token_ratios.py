"""Characters per token, learned from what the backends themselves report. No function commits."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from gateway.store.prepared import Prepared
from gateway.store.tables.calls import TokenRatio

ratios = TokenRatio.__table__  # type: ignore[attr-defined]
_RATIO = Prepared(
    select(ratios.c.ratio).where(
        ratios.c.conversation_pk == bindparam("conversation"),
        ratios.c.backend == bindparam("backend"),
    )
)
_NEW_RATIO = Prepared(ratios.insert(), ["conversation_pk", "backend", "ratio"])
_SET_RATIO = Prepared(
    ratios.update()
    .where(
        ratios.c.conversation_pk == bindparam("conversation"),
        ratios.c.backend == bindparam("served_by"),
    )
    .values(ratio=bindparam("learned"))
)


def token_ratio(connection: Connection, conversation_pk: int, backend: str) -> float | None:
    """Characters per token as learned here; None before the first usage figure."""
    found: float | None = _RATIO.scalar(connection, conversation=conversation_pk, backend=backend)
    return found


def save_token_ratio(
    connection: Connection, conversation_pk: int, backend: str, ratio: float
) -> None:
    values = {"conversation": conversation_pk, "served_by": backend, "learned": ratio}
    if _SET_RATIO.run(connection, **values) == 0:
        _NEW_RATIO.run(connection, conversation_pk=conversation_pk, backend=backend, ratio=ratio)
