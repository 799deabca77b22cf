"""What may not change while a run is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

import gateway
import policies
from gateway.evals.forgetting import fingerprint
from gateway.evals.forgetting.fingerprint import code_digest, take_fingerprint
from policies.schema import Policy

TALK = [("user", "hello"), ("assistant", "good day")]


def test_each_part_has_its_own_digest() -> None:
    one = take_fingerprint(Policy(), {"backend": "a"}, [TALK])
    assert list(one) == ["code", "policy", "backend", "conversation"]
    assert take_fingerprint(Policy(), {"backend": "a"}, [list(TALK)]) == one
    other = take_fingerprint(Policy(memory="rolling"), {"backend": "b"}, [TALK, TALK])
    assert {name for name in one if one[name] != other[name]} == {
        "policy",
        "backend",
        "conversation",
    }
    parted = take_fingerprint(Policy(), {"backend": "a"}, [TALK[:1], TALK[1:]])
    assert parted["conversation"] != one["conversation"]


def test_a_changed_rule_or_prompt_changes_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = code_digest()
    house = tmp_path / "policies"
    house.mkdir()
    for file in Path(policies.__file__).parent.glob("*.py"):
        (house / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(policies, "__file__", str(house / "__init__.py"))
    copied = code_digest()
    assert copied != before
    with (house / "generations.py").open("a") as rules:
        rules.write("\n# another rule\n")
    assert code_digest() != copied


def test_everything_that_is_evaluated_is_there() -> None:
    house = Path(gateway.__file__).parent
    assert all((house / name).exists() for name in fingerprint._EVALUATED)
