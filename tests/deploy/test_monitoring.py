"""Dashboard and alerts ask for what the program counts, in words that Prometheus understands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from gateway.api import metrics
from gateway.meters import Meters
from gateway.meters.queues import CIRCUIT_STATES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# What Prometheus itself and the process collector know.
FOREIGN = {
    "up": {"job", "instance"},
    "process_resident_memory_bytes": {"job", "instance"},
    "process_cpu_seconds_total": {"job", "instance"},
}
SEVERITIES = {"warning", "critical"}


def known() -> dict[str, set[str]]:
    """Every series that the program has, with its labels."""
    names = Meters().registry._names_to_collectors
    found: dict[str, set[str]] = dict(FOREIGN)
    for name, collector in names.items():
        is_series = not {f"{name}_total", f"{name}_bucket"} & set(names)
        if name.startswith("foldgate_") and is_series and not name.endswith("_created"):
            labels = set(getattr(collector, "_labelnames", ()))
            found[name] = labels | {"le"} if name.endswith("_bucket") else labels
    return found


KNOWN = known()


def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    assert set(loaded) == {"groups"}
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    loaded = json.loads((DEPLOY / "dashboard.json").read_text())
    assert isinstance(loaded, dict)
    return loaded


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def asked_for() -> list[tuple[str, str]]:
    """(where, expression) of everything that is asked of Prometheus."""
    found = [(rule["alert"], rule["expr"]) for rule in rules()]
    for panel in panels():
        for target in panel["targets"]:
            expr = re.sub(r"\$__(rate_interval|range)", "5m", target["expr"])
            found.append((panel["title"], expr))
    return found


def walk(node: Any) -> Iterator[Any]:
    """An expression and all its parts."""
    yield node
    for name in ("lhs", "rhs", "expr", "args", "vector_selector"):
        part = getattr(node, name, None)
        for each in part if isinstance(part, list) else [part]:
            if each is not None:
                yield from walk(each)


def selectors(expr: str) -> list[promql_parser.VectorSelector]:
    parsed = promql_parser.parse(expr)
    return [part for part in walk(parsed) if isinstance(part, promql_parser.VectorSelector)]


@pytest.mark.parametrize(("where", "expr"), asked_for())
def test_what_is_asked_for_is_counted(where: str, expr: str) -> None:
    found = selectors(expr)
    assert found
    for selector in found:
        assert selector.name in KNOWN, f"{where}: no metric {selector.name}"
        for matcher in selector.matchers.matchers:
            if matcher.name != "job":
                assert matcher.name in KNOWN[selector.name], f"{where}: {selector.name}{matcher}"


@pytest.mark.parametrize(("where", "expr"), asked_for())
def test_what_is_grouped_by_is_a_label_of_what_is_asked_for(where: str, expr: str) -> None:
    for part in walk(promql_parser.parse(expr)):
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            labels = set(part.modifier.labels)
            inner = [p for p in walk(part) if isinstance(p, promql_parser.VectorSelector)]
            for selector in inner:
                assert labels <= KNOWN[selector.name or ""], f"{where}: {labels}"


def test_values_of_labels_are_those_that_are_counted() -> None:
    told = (DEPLOY / "dashboard.json").read_text() + (DEPLOY / "alerts.yaml").read_text()
    states = re.findall(r'circuit_state\{[^}]*state!?=\\?"([\w-]+)', told)
    assert states and set(states) <= set(CIRCUIT_STATES)
    reasons = re.findall(r'finish_reason=\\?"(\w+)', told)
    assert reasons and set(reasons) <= {"length"}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Foldgate[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in SEVERITIES
    assert re.fullmatch(r"\d+m", rule.get("for", "0m"))
    told = rule["annotations"]
    assert set(told) == {"summary", "what_to_do"}
    named = set(re.findall(r"\$labels\.(\w+)", told["summary"] + told["what_to_do"]))
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by\s*\(([^)]*)\)", rule["expr"]))))
    plain = "by (" not in rule["expr"].replace("by(", "by (")
    allowed = set().union(*(KNOWN[s.name or ""] for s in selectors(rule["expr"])))
    assert named <= (allowed if plain else grouped)


def test_alerts_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert {
        "FoldgateRepliesCutByLength",
        "FoldgateHardCuts",
        "FoldgateSummariesRefused",
        "FoldgateReuseDropped",
        "FoldgateCircuitOpen",
        "FoldgateSummariesParked",
    } <= set(names)


def test_promtool_finds_nothing_and_the_alerts_speak_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on this machine")
    for command in (
        ("check", "rules", "deploy/alerts.yaml"),
        ("check", "config", "--syntax-only", "deploy/prometheus.yaml"),
        ("test", "rules", "tests/deploy/alerts.test.yaml"),
    ):
        done = subprocess.run(
            (promtool, *command), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_of_the_alerts_name_alerts_and_series_that_exist() -> None:
    loaded = yaml.safe_load((ROOT / "tests/deploy/alerts.test.yaml").read_text())
    names = {rule["alert"] for rule in rules()}
    for test in loaded["tests"]:
        assert {one["alertname"] for one in test["alert_rule_test"]} <= names
        for series in test["input_series"]:
            (selector,) = selectors(series["series"])
            labels = {matcher.name for matcher in selector.matchers.matchers}
            assert labels == KNOWN[selector.name or ""]


def test_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (at["x"] + right, at["y"] + down) for right in range(at["w"]) for down in range(at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_panels_ask_the_chosen_source_for_the_chosen_backends() -> None:
    variables = {one["name"] for one in dashboard()["templating"]["list"]}
    assert variables == {"datasource", "backend"}
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"]))
            assert used <= {"backend", "__rate_interval", "__range"}
            legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            allowed: set[str] = set()
            for selector in selectors(re.sub(r"\$__\w+", "5m", target["expr"])):
                allowed |= KNOWN[selector.name or ""]
            assert legend <= allowed, panel["title"]


def test_prometheus_collects_where_the_program_answers() -> None:
    loaded = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    (job,) = loaded["scrape_configs"]
    assert job["metrics_path"] in {getattr(route, "path", "") for route in metrics.router.routes}
    assert job["job_name"] == "foldgate"
    jobs = re.findall(r'job=\\?"(\w+)', (DEPLOY / "dashboard.json").read_text())
    jobs += re.findall(r'job="(\w+)', (DEPLOY / "alerts.yaml").read_text())
    assert set(jobs) == {job["job_name"]}
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:8400"]


def test_every_metric_stands_in_the_readme_with_its_labels() -> None:
    told = (DEPLOY / "README.md").read_text()
    rows = re.findall(r"^\| `(foldgate_\w+)` \| ([^|]*) \|", told, re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    counted = {
        re.sub(r"_bucket$", "", name): labels - {"le"}
        for name, labels in KNOWN.items()
        if name.startswith("foldgate_") and not name.endswith(("_sum", "_count"))
    }
    assert listed == counted
