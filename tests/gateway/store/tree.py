"""A conversation that branches, with chapters, gists and folds laid on it by hand."""

from __future__ import annotations

from sqlalchemy import Connection

from gateway.store import chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.fold_rows import NONE, FoldRow, Shown
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.house import user
from tests.gateway.seeds import NOW, new_message


class Tree:
    """A trunk of ten messages and a branch that leaves it behind the fourth."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        owner = transcript.ensure_owner(connection, "ann", "", NOW)
        self.conversation: ConversationRow = transcript.create_conversation(
            connection, owner, alias=None, model="foldgate", now_ms=NOW
        )
        self.trunk = self._grow(None, [f"m{at}" for at in range(1, 11)])
        self.branch = self.trunk[:4] + self._grow(self.trunk[3], [f"b{at}" for at in range(5, 11)])

    def _grow(self, parent: Node | None, texts: list[str]) -> list[Node]:
        new = [new_message(user(text)) for text in texts]
        return transcript.append_messages(self.connection, self.conversation, parent, new, NOW)

    def chapter(self, path: list[Node], first: int, last: int, text: str | None = "told") -> int:
        pk, _ = chapter_rows.add_chapter(
            self.connection,
            self.conversation.pk,
            Span(first, last, 100),
            first_pk=path[first - 1].pk,
            last_pk=path[last - 1].pk,
            now_ms=NOW,
        )
        if text is not None:
            self.version(pk, text)
        return pk

    def version(self, chapter: int, text: str, origin: str = "model") -> int:
        return chapter_rows.add_version(
            self.connection,
            self.conversation.pk,
            chapter,
            text=text,
            origin=origin,
            backend=None,
            prompt=None,
            now_ms=NOW,
        )

    def gist(self, path: list[Node], last: int, policy: str = "small", text: str = "gist") -> int:
        return gist_rows.add_gist(
            self.connection,
            self.conversation.pk,
            policy=policy,
            last_pk=path[last - 1].pk,
            last_depth=last,
            sources=[],
            text=text,
            origin="model",
            backend=None,
            prompt=None,
            now_ms=NOW,
        )

    def fold(
        self,
        path: list[Node],
        at: int,
        border: int,
        versions: list[int],
        shown: Shown = NONE,
    ) -> FoldRow:
        end = path[border - 1]
        return fold_rows.add_fold(
            self.connection,
            self.conversation.pk,
            policy="small",
            at=path[at - 1],
            border=(end.pk, end.depth, end.cum_chars),
            kind="fold",
            gist_pk=None,
            memory=versions,
            memory_chars=10,
            stand_ins=0,
            shown=shown,
            revision="r",
            now_ms=NOW,
        )

    def spans(self, path: list[Node], depth: int, above: int = 0) -> list[tuple[int, int]]:
        rows = chapter_rows.chapter_row(
            self.connection, self.conversation.pk, path[depth - 1], above=above
        )
        return [(row.first_depth, row.last_depth) for row in rows]

    def deepest(self, path: list[Node], depth: int, policy: str = "small") -> FoldRow | None:
        return fold_rows.deepest_fold(
            self.connection, self.conversation.pk, policy, path[depth - 1]
        )

    def newest_gist(self, path: list[Node], border: int, **more: object) -> str | None:
        found = gist_rows.newest_gist(
            self.connection,
            self.conversation.pk,
            "small",
            path[-1],
            border=border,
            **more,  # type: ignore[arg-type]
        )
        return None if found is None else found.text
