"""What the database itself lays side by side: each look is a statement that finds wrong rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Look:
    """A statement whose rows, (row number, conversation's id), are all wrong. of: what a row is."""

    check: str
    of: str
    says: str
    sql: str

    def where(self, row: Any) -> str:
        return f"{self.of} {row[0]}" + (f" of {row[1]}" if row[1] else "")


# (table, column, table that it names). A foreign key would hold these were they declared so.
_NAMES = (
    ("conversations", "head_pk", "messages"),
    ("chapters", "first_pk", "messages"),
    ("chapters", "last_pk", "messages"),
    ("chapter_versions", "chapter_pk", "chapters"),
    ("gists", "last_pk", "messages"),
    ("folds", "at_pk", "messages"),
    ("folds", "border_pk", "messages"),
    ("folds", "gist_pk", "gists"),
    ("attempts", "asked_pk", "messages"),
    ("attempts", "reply_pk", "messages"),
    ("attempts", "system_pk", "system_texts"),
    ("attempts", "fold_pk", "folds"),
    ("ledger_entries", "last_pk", "messages"),
    ("ledger_entries", "source_pk", "messages"),
    ("ledger_entries", "chapter_pk", "chapters"),
    ("ledger_entries", "version_pk", "chapter_versions"),
    ("ledger_entries", "gist_pk", "gists"),
    ("ledger_marks", "entry_pk", "ledger_entries"),
    ("ledger_marks", "by_pk", "ledger_entries"),
    ("ledger_marks", "chapter_pk", "chapters"),
    ("ledger_marks", "last_pk", "messages"),
    ("notes", "fold_pk", "folds"),
    ("notes", "asked_pk", "messages"),
    ("quarantine", "chapter_pk", "chapters"),
    ("search_keys", "last_pk", "messages"),
)
# (table, column that holds a list of row numbers as JSON, where in it, table that it names).
_LISTS = (
    ("gists", "sources", "$", "chapter_versions"),
    ("folds", "memory", "$", "chapter_versions"),
    ("folds", "shown", "$.pins", "ledger_entries"),
    ("folds", "shown", "$.open", "ledger_entries"),
    ("folds", "shown", "$.closed", "ledger_entries"),
)
_PAYLOADS = (
    ("$.chapter", "chapters"),
    ("$.last_pk", "messages"),
    ("$.gist", "gists"),
    ("$.chapters", "chapter_versions"),
)
# (table, row number of a message, its depth as the row says it).
_DEPTHS = (
    ("chapters", "first_pk", "first_depth"),
    ("chapters", "last_pk", "last_depth"),
    ("gists", "last_pk", "last_depth"),
    ("folds", "at_pk", "at_depth"),
    ("folds", "border_pk", "border_depth"),
    ("ledger_entries", "last_pk", "last_depth"),
    ("ledger_marks", "last_pk", "last_depth"),
    ("notes", "asked_pk", "asked_depth"),
    ("search_keys", "last_pk", "last_depth"),
)
_WHOSE = "JOIN conversations c ON c.pk = t.conversation_pk"
# A posting's rowid is a message's pk above 26 bits, and its depth above 6 (policies.recall.places).
_SEARCH = (
    (
        "a posting of a message that is not there",
        "SELECT s.rowid >> 26, NULL FROM message_search s"
        " LEFT JOIN messages m ON m.pk = s.rowid >> 26 WHERE m.pk IS NULL",
    ),
    (
        "its posting says another depth",
        "SELECT m.pk, c.id FROM message_search s JOIN messages m ON m.pk = s.rowid >> 26"
        " JOIN conversations c ON c.pk = m.conversation_pk"
        " WHERE m.depth <> (s.rowid >> 6) & 1048575",
    ),
    (
        "the index does not hold as many messages as it says",
        "SELECT 0, c.id FROM search_keys t JOIN conversations c ON c.pk = t.conversation_pk"
        " LEFT JOIN (SELECT m.conversation_pk AS whose, count(*) AS held FROM message_search s"
        " JOIN messages m ON m.pk = s.rowid >> 26 GROUP BY m.conversation_pk) h"
        " ON h.whose = t.conversation_pk WHERE t.messages <> coalesce(h.held, 0)",
    ),
)


def _find_missing() -> Iterator[Look]:
    for table, column, target in _NAMES:
        whose = "c.pk" if table == "conversations" else "t.conversation_pk"
        own = "JOIN conversations c ON c.pk = t.pk" if table == "conversations" else _WHOSE
        key = "t.conversation_pk" if table == "search_keys" else "t.pk"
        yield Look(
            "targets",
            f"{table} row",
            f"its {column} names nothing of its conversation in {target}",
            f"SELECT {key}, c.id FROM {table} t {own}"
            f" LEFT JOIN {target} r ON r.pk = t.{column}"
            f" WHERE t.{column} <> 0 AND (r.pk IS NULL OR r.conversation_pk <> {whose})",
        )


def _find_missing_in_lists() -> Iterator[Look]:
    for table, column, path, target in _LISTS:
        yield Look(
            "targets",
            f"{table} row",
            f"its {column} names what is not in {target} of its conversation",
            _listed(table, column, path, target),
        )
        if path == "$":
            yield Look(
                "targets",
                f"{table} row",
                f"its {column} cannot be read",
                f"SELECT t.pk, c.id FROM {table} t {_WHOSE} WHERE NOT json_valid(t.{column})",
            )
    for path, target in _PAYLOADS:
        yield Look(
            "jobs",
            "job",
            f"its {path.removeprefix('$.')} is not there",
            _listed("jobs", "payload", path, target),
        )


def _listed(table: str, column: str, path: str, target: str) -> str:
    return (
        f"SELECT DISTINCT t.pk, c.id FROM {table} t {_WHOSE},"
        f" json_each(CASE WHEN json_valid(t.{column}) THEN t.{column} END, '{path}') j"
        f" LEFT JOIN {target} r ON r.pk = j.value"
        " WHERE j.value IS NOT NULL AND (r.pk IS NULL OR r.conversation_pk <> t.conversation_pk)"
    )


def _find_depths() -> Iterator[Look]:
    for table, column, depth in _DEPTHS:
        key = "t.conversation_pk" if table == "search_keys" else "t.pk"
        yield Look(
            "depths",
            f"{table} row",
            f"its {depth} is not its message's",
            f"SELECT {key}, c.id FROM {table} t {_WHOSE} JOIN messages m ON m.pk = t.{column}"
            f" WHERE m.depth <> t.{depth}",
        )


def _find_others() -> Iterator[Look]:
    yield Look(
        "gists",
        "gist",
        "no chapter ends where it does",
        f"SELECT t.pk, c.id FROM gists t {_WHOSE} JOIN messages m ON m.pk = t.last_pk"
        " WHERE NOT EXISTS (SELECT 1 FROM chapters h"
        " WHERE h.conversation_pk = t.conversation_pk AND h.last_pk = t.last_pk)",
    )
    yield Look(
        "owners",
        "alias of conversation",
        "it is another owner's than the conversation",
        f"SELECT c.pk, c.id FROM conversation_aliases t {_WHOSE} WHERE c.owner_pk <> t.owner_pk",
    )
    yield Look(
        "owners",
        "profile fact",
        "it was learned in another owner's conversation",
        f"SELECT t.pk, c.id FROM profile_facts t {_WHOSE} WHERE c.owner_pk <> t.owner_pk",
    )
    for says, sql in _SEARCH:
        yield Look("search", "message", says, sql)


LOOKS: tuple[Look, ...] = (
    *_find_missing(),
    *_find_missing_in_lists(),
    *_find_depths(),
    *_find_others(),
)
