"""Recordings: the published list of LoCoMo is several conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.replay.recordings import Recording, RecordingError, read_recordings


def sample(id: str, text: str) -> dict[str, Any]:
    lines = [{"speaker": "Ann", "text": text}, {"speaker": "Ben", "text": "👍"}]
    talk = {"speaker_a": "Ann", "speaker_b": "Ben", "session_1": lines}
    return {"sample_id": id, "conversation": talk, "qa": []}


SAMPLES = [sample("conv-26", "京都に住んでいます。"), sample("conv-30", "Я живу в Казани.")]
READ = [
    Recording("ten-conv-26", (("user", "京都に住んでいます。"), ("assistant", "👍"))),
    Recording("ten-conv-30", (("user", "Я живу в Казани."), ("assistant", "👍"))),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps(SAMPLES), READ),
        (json.dumps(SAMPLES[:1]), READ[:1]),
        ("\n".join(map(json.dumps, SAMPLES)), READ),
        (json.dumps(SAMPLES[0]["conversation"]), [Recording("ten", READ[0].messages)]),
    ],
)
def test_each_sample_is_a_conversation(tmp_path: Path, text: str, found: list[Recording]) -> None:
    path = tmp_path / "ten.json"
    path.write_text(text)
    assert read_recordings([path]) == found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"qa": []}, r"neither a LoCoMo file, .*; a LoCoMo file is .* or a list of"),
        ([*SAMPLES, {"role": "user"}], r"item 3 is no conversation"),
    ],
)
def test_other_shapes_are_told_what_is_read(tmp_path: Path, value: Any, why: str) -> None:
    path = tmp_path / "ten.json"
    path.write_text(json.dumps(value))
    with pytest.raises(RecordingError, match=why):
        read_recordings([path])
