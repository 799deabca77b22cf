"""Conversations in five languages, in the form of LoCoMo: thirty facts in a long run of small talk.

Written by hand for these tests: `spoken/LANGUAGE.txt` holds the facts, the replies to them and the
questions, which ask in other words; the small talk between them is put together from its lines,
whose words also stand in the facts (sister, work, school, …).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "spoken"
LANGUAGES = ("ja", "zh", "ko", "ru", "es")
BETWEEN = 52
"""Lines of small talk before each fact: 30 facts make some 1,600 messages, as three joined
conversations of LoCoMo have."""


def read_talk(language: str) -> tuple[list[tuple[str, str, str]], list[str], list[str], list[str]]:
    """(fact, reply, question) rows, lines of small talk, and what their {a} and {b} may be."""
    text = (FOLDER / f"{language}.txt").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    border = rows.index("---")
    facts = [tuple(part.strip() for part in row.split("|")) for row in rows[:border]]
    *lines, subjects, people = rows[border + 1 :]
    return (
        [(fact, reply, question) for fact, reply, question in facts],
        lines,
        subjects.split(", "),
        people.split(", "),
    )


def make_talk(language: str) -> dict[str, Any]:
    """The conversation of a language: one session a fact."""
    facts, lines, subjects, people = read_talk(language)
    made: dict[str, Any] = {"speaker_a": "A", "speaker_b": "B", "qa": []}
    count = 0
    for number, (fact, reply, question) in enumerate(facts, start=1):
        said = []
        for _ in range(BETWEEN):
            line = lines[count % len(lines)]
            subject = subjects[(count * 7 + count // 20) % len(subjects)]
            person = people[(count * 5 + count // 13) % len(people)]
            said.append(line.format(a=subject, b=person))
            count += 1
        said[BETWEEN // 2 : BETWEEN // 2] = [fact, reply]
        made[f"session_{number}"] = [
            {"speaker": "AB"[at % 2], "dia_id": f"D{number}:{at + 1}", "text": text}
            for at, text in enumerate(said)
        ]
        evidence = f"D{number}:{BETWEEN // 2 + 1}"
        made["qa"].append({"question": question, "evidence": [evidence], "category": language})
    return made
