"""What a run has made, kept line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted import Scripted
from gateway.errors import ConfigurationError
from gateway.evals.forgetting.state import FILE, Recorded, RunStopped, State, call_key, open_state
from policies.schema import ScriptedBackend

PRINT = {"code": "aa", "policy": "bb"}


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "state"
    state = open_state(folder, PRINT)
    state.add("text", "one", "灯台 🎉 \ud800")
    state.add("grade", "one", False)
    state.add("text", "one", "something else")
    state.close()
    again = open_state(folder, PRINT)
    assert again.find("text", "one") == "灯台 🎉 \ud800"
    assert again.find("grade", "one") is False
    assert again.find("grade", "two") is None
    assert again.count("text") == 1
    again.close()
    assert len((folder / FILE).read_text().splitlines()) == 3


def test_without_a_folder_it_is_kept_in_memory_only() -> None:
    state = open_state(None, PRINT)
    state.add("text", "one", "x")
    assert (state.find("text", "one"), state.path) == ("x", None)
    state.close()


def test_a_line_that_a_kill_cut_is_taken_off(tmp_path: Path) -> None:
    state = open_state(tmp_path, PRINT)
    state.add("text", "one", "x")
    state.close()
    file = tmp_path / FILE
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"kind": "text", "key": "two", "val')
    again = open_state(tmp_path, PRINT)
    assert again.find("text", "two") is None
    again.add("text", "two", "y")
    again.close()
    assert file.read_bytes().startswith(whole)
    assert json.loads(file.read_bytes().splitlines()[-1])["value"] == "y"


def test_another_fingerprint_is_refused_in_words_and_fresh_begins_anew(tmp_path: Path) -> None:
    open_state(tmp_path, PRINT).close()
    with pytest.raises(ConfigurationError, match=r"another policy: .*--fresh"):
        open_state(tmp_path, {**PRINT, "policy": "cc"})
    with pytest.raises(ConfigurationError, match="another code, keep"):
        open_state(tmp_path, {**PRINT, "code": "zz", "keep": "0.5"})
    state = open_state(tmp_path, {**PRINT, "policy": "cc"}, fresh=True)
    assert state.find("fingerprint", "") == {**PRINT, "policy": "cc"}
    state.close()


@pytest.mark.parametrize(
    ("content", "why"),
    [("no json\n", "not JSON"), ("[1]\n", "no line of"), ('{"kind": "call"}\n', "no line of")],
)
def test_what_is_no_state_is_left_alone(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigurationError, match=why):
        open_state(tmp_path, PRINT)
    assert (tmp_path / FILE).read_text() == content


def test_a_file_of_lines_without_a_fingerprint_is_of_another_run(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"kind": "text", "key": "", "value": "x"}\n')
    with pytest.raises(ConfigurationError, match="another code, policy"):
        open_state(tmp_path, PRINT)


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file"):
        open_state(tmp_path / "file" / "state", PRINT)


# -- calls ----------------------------------------------------------------------------------------


def call(text: str = "hello", **more: Any) -> Call:
    message = json.dumps({"role": "user", "content": text}).encode()
    given: dict[str, Any] = {"max_tokens": 50, "request_id": "r", "purpose": "auxiliary", **more}
    return Call((message,), {"temperature": 0}, False, **given)


class Faulty(Scripted):
    fault: UpstreamFault | None = None
    calls = 0

    async def complete(self, call: Call) -> Any:
        self.calls += 1
        if self.fault is not None:
            raise self.fault
        return await super().complete(call)


@pytest.fixture
def faulty() -> Faulty:
    return Faulty("s", ScriptedBackend(latency=0))


async def test_a_call_is_made_once(faulty: Faulty) -> None:
    state = State()
    recorded = Recorded(faulty, state)
    first = await recorded.complete(call())
    again = await Recorded(faulty, state).complete(call())
    assert (first.parsed, faulty.calls, recorded.asked) == (again.parsed, 1, 1)
    assert json.loads(again.data) == first.parsed


def test_calls_are_known_by_everything_that_is_sent() -> None:
    keys = {
        call_key("s", call()),
        call_key("t", call()),
        call_key("s", call("bye")),
        call_key("s", call(max_tokens=51)),
        call_key("s", call(request_id="q")),
    }
    assert len(keys) == 5


async def test_a_fault_that_is_an_answer_is_kept(faulty: Faulty) -> None:
    state = State()
    faulty.fault = UpstreamFault(FaultKind.REFUSED, "No", received={"choices": []})
    for _ in range(2):
        with pytest.raises(UpstreamFault) as caught:
            await Recorded(faulty, state).complete(call())
        assert (caught.value.kind, caught.value.what) == (FaultKind.REFUSED, "No")
        assert caught.value.received == {"choices": []}
    assert faulty.calls == 1


async def test_what_broke_off_is_a_fault_and_asked_again(faulty: Faulty) -> None:
    state = State()
    faulty.fault = UpstreamFault(FaultKind.INTERRUPTED, "broke off")
    with pytest.raises(UpstreamFault):
        await Recorded(faulty, state).complete(call())
    faulty.fault = None
    assert (await Recorded(faulty, state).complete(call())).parsed["choices"]


async def test_nobody_there_ends_the_run(faulty: Faulty) -> None:
    state = State()
    faulty.fault = UpstreamFault(FaultKind.UNAVAILABLE, "Nobody answers")
    with pytest.raises(RunStopped, match="Nobody answers"):
        await Recorded(faulty, state).complete(call())
    assert state.count("call") == 0


async def test_everything_else_is_the_backends_own(faulty: Faulty) -> None:
    recorded = Recorded(faulty, State())
    await recorded.start()
    assert (recorded.name, recorded.kind, recorded.local) == ("s", "scripted", True)
    assert (await recorded.health()).ok
    assert await recorded.window() == faulty.window_tokens
    assert await recorded.count_tokens(call().messages) == await faulty.count_tokens(
        call().messages
    )
    assert recorded.dropped_params({"n": 2}) == ()
    assert recorded.slot_care is None
    assert not await recorded.prefill(call())
    chunks = [chunk async for chunk in recorded.stream(call())]
    assert chunks[-1].parsed["usage"]
    await recorded.aclose()
