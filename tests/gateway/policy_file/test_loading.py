from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.policy_file import PolicyFileError, load_policies, parse_policies
from gateway.policy_file.loading import MAX_BYTES
from gateway.policy_file.wording import KINDS, PARTS
from policies.schema import Policy

SHIPPED = Path(__file__).parents[3] / "policies.yaml"
GOOD = """\
version: 1
backends:
  glm:
    kind: llama_cpp
    url: http://127.0.0.1:8080
policies:
  fold:
    view:
      start: 48000
      ceiling: 56000
models:
  chat:
    tiers:
      - {backend: glm, policy: fold}
"""


def load(text, **environ):
    return parse_policies(text, name="policies.yaml", environ=environ)


def problems(text, **environ):
    with pytest.raises(PolicyFileError) as caught:
        load(text, **environ)
    return caught.value.problems


def test_a_good_file_is_read():
    loaded = load(GOOD)
    assert loaded.file.policies["fold"] == Policy(name="fold")
    assert loaded.file.models["chat"].tiers[0].backend == "glm"
    assert loaded.text == GOOD


# ── the shipped file ──────────────────────────────────────────────────────────────────────────


def test_the_shipped_file_works_untouched_with_nothing_set():
    loaded = load_policies(SHIPPED, {})
    file = loaded.file
    assert file.backends["local-glm"].url == "http://127.0.0.1:8080"
    off = {name for name, backend in file.backends.items() if backend.off_reason}
    assert off == {"deepseek", "gemini", "grok"}
    assert loaded.ended
    assert loaded.path == SHIPPED


def test_the_shipped_policies_are_the_published_numbers():
    policies = load_policies(SHIPPED, {}).file.policies
    assert policies["local-fold"] == Policy(name="local-fold")
    cloud = policies["cloud-verbatim"]
    view = cloud.view
    assert (view.start, view.ceiling, view.headroom, view.keep) == (
        200_000,
        240_000,
        40_000,
        100_000,
    )
    assert (cloud.chapters.stack, cloud.gist.length, cloud.recall.budget) == (12_000, 1_500, 0)
    assert cloud.keep_warm


def test_the_shipped_file_holds_every_key():
    root = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    for home, parts in PARTS.items():
        held: set[str] = set()
        for path in places(root, home):
            held |= set(path)
        known = {key for part in parts for key in part.model_fields} - {"name"}
        assert known - held == set(), home


def places(value, home):
    if not home:
        return [value]
    if home[0] == "*":
        inside = value.values() if isinstance(value, dict) else value
    else:
        inside = [value[home[0]]] if home[0] in value else []
    return [found for one in inside for found in places(one, home[1:])]


def test_the_table_of_parts_is_the_schema():
    fields = {part.__name__ for parts in PARTS.values() for part in parts}
    assert len(fields) == 22
    assert set(PARTS["backends", "*"]) == set(KINDS.values())


# ── what a revision is ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "same",
    [
        "# a comment\n" + GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("48000", "48k chars"),
        GOOD.replace("48000", '"48_000"'),
        GOOD.replace("      ceiling: 56000\n", ""),
        GOOD + "...\n",
        "x-sizes: &sizes {start: 48000}\n" + GOOD.replace("      start: 48000", "      <<: *sizes"),
    ],
)
def test_layout_and_written_defaults_leave_the_revision_as_it_is(same):
    """C12."""
    assert load(same).revision == load(GOOD).revision


@pytest.mark.parametrize(
    ("old", "new"),
    [("48000", "47999"), ("fold", "other"), ("8080", "8081"), ("version: 1", "version: 1\nx: 1")],
)
def test_every_other_change_is_another_revision_or_none(old, new):
    try:
        assert load(GOOD.replace(old, new)).revision != load(GOOD).revision
    except PolicyFileError as error:
        assert "unknown key x" in str(error)


def test_a_changed_secret_changes_the_file_and_not_its_published_digest():
    text = GOOD.replace("url:", "api_key: ${KEY}\n    url:")
    one, other = load(text, KEY="eins"), load(text, KEY="zwei")
    assert one.revision == other.revision
    assert one.file != other.file
    assert one.revision != load(GOOD).revision


def test_an_end_mark_tells_a_whole_file():
    assert load(GOOD + "...\n").ended
    assert not load(GOOD).ended


# ── wrong files: the line, the column, the path, and words of the message and the hint ────────

START = "      start: 48000"
VIEW = [
    ("48,000", 14, 'read "48,000"; allowed is a size', "write 48000"),
    ("48 000", 14, 'read "48 000"; allowed is a size', "write 48000"),
    ("48.000", 14, "read 48.000; allowed is a whole number", "write 48000"),
    ("48000.0", 14, "read 48000.0; allowed is a whole number", ""),
    ("48k", 14, "after k or M a size needs its unit", "write 48k chars or 48k tokens"),
    ("48K chars", 14, "allowed is a size", "write 48k chars"),
    ("48k tokens", 14, "this view counts in chars", "unit: tokens"),
    ("48_00", 14, "others as text", "in threes"),
    ("010", 14, "octal", "without the leading 0"),
    ("0x10", 14, "hexadecimal", "decimal"),
    ("22:30", 14, "base 60", "quotes"),
    ("1e6", 14, "differently", "digits"),
    ("yes", 14, "true or false", "quotes"),
    ("true", 14, "read true; allowed is a whole number", ""),
    ("2026-10-01", 14, "a date", "quotes"),
    ("", 7, "read nothing; allowed is a whole number", ""),
    ("~", 14, "read null; allowed is a whole number", ""),
    ("[48000]", 14, "read a list; allowed is a whole number", ""),
    ("{a: 1}", 14, "read a mapping; allowed is a whole number", ""),
    ("-5", 14, "read -5; allowed is 500 or more", ""),
    ("499", 14, "read 499; allowed is 500 or more", ""),
    ("9" * 20, 14, "allowed is 20,000,000 or less", ""),
    ("４８０００", 14, "allowed is a size", "write 48000"),
    ("viel", 14, 'read "viel"; allowed is a size', ""),
    ("48000#x", 14, 'read "48000#x"; allowed is a size', ""),
    ("$SIZE", 14, "a $ that begins no variable", "${NAME}"),
    ("${SIZE}", 14, "variable SIZE is not set", "${SIZE:-}"),
    ("\u00a048000", 14, "NO-BREAK SPACE (U+00A0)", "delete it"),
    ("“48000”", 14, '“ is not the " of YAML', 'type "'),
    ("20000", 14, "16,000 is not below 20,000 − 17,000 = 3,000", "raise start"),
    ("!!int 48000", 14, "tags", "delete it"),
    ("*size", 14, "names no anchor", "anchor"),
]


@pytest.mark.parametrize(("value", "column", "message", "hint"), VIEW)
def test_a_wrong_size_is_told_where_it_stands(value, column, message, hint):
    (problem,) = problems(GOOD.replace(START, f"      start: {value}".rstrip(" ")))
    assert (problem.line, problem.column) == (9, column)
    assert problem.path in ("policies.fold.view.start", "")
    assert message in problem.message
    assert hint in problem.hint


# What is put in place of what in the good file; path, line, column, message, hint.
WRONG = [
    ("version: 1\n", "", "version", (1, 1), "the key version is missing", "version: 1"),
    ("version: 1", "version: 2", "version", (1, 10), "read 2; allowed is 1", ""),
    ("version: 1", "version: 1.10", "version", (1, 10), "read 1.10; allowed is 1", ""),
    ("version: 1", "version: true", "version", (1, 10), "read true; allowed is 1", ""),
    ("policies:", "polices:", "polices", (6, 1), "unknown key polices", "did you mean policies?"),
    ("kind: llama_cpp", "kind: lama", "backends.glm.kind", (4, 11), "llama_cpp, litellm or", "?"),
    ("kind: llama_cpp\n    ", "", "backends.glm.kind", (3, 3), "the key kind is missing", "kind:"),
    ("kind: llama_cpp", "kind: no", "backends.glm.kind", (4, 11), "read no;", "quotes"),
    ("kind: llama_cpp", "kind: [a]", "backends.glm.kind", (4, 5), "read a list", ""),
    ("    url: http", "    uri: http", "backends.glm.uri", (5, 5), "unknown key uri", "url?"),
    ("http://127.0.0.1:8080", "127.0.0.1:8080", "backends.glm.url", (5, 10), "http://", ""),
    ("127.0.0.1:8080", "host/v1", "backends.glm.url", (5, 10), "root of llama", "take /v1"),
    ("127.0.0.1:8080", "host\n    model: 4_5", "backends.glm.model", (6, 12), "4_5", "quotes"),
    ("127.0.0.1:8080", "host\n    model: 45", "backends.glm.model", (6, 12), "is text", '"45"'),
    ("127.0.0.1:8080", "host\n    model: ''", "backends.glm.model", (6, 12), "not be empty", ""),
    ("127.0.0.1:8080", "host\n    slots: pin", "backends.glm.slots", (6, 12), "pinned", "pinned?"),
    ("127.0.0.1:8080", "host\n    window: 8k chars", "backends.glm.window", (6, 13), "tokens", "8"),
    (
        "127.0.0.1:8080",
        "host\n    local: 1",
        "backends.glm.local",
        (6, 12),
        "true or",
        "write true",
    ),
    (
        "127.0.0.1:8080",
        "host\n    slots: shared\n    background_slots: 1",
        "backends.glm.background_slots",
        (7, 23),
        "background_slots needs slots: pinned",
        "take background_slots out, or write slots: pinned",
    ),
    (
        "127.0.0.1:8080",
        "host\n    timeouts: {idle: 20m, total: 10m}",
        "backends.glm.timeouts.idle",
        (6, 22),
        "idle must not be longer than total: 1,200 s is longer than 600 s",
        "lower idle or raise total",
    ),
    (
        "kind: llama_cpp\n    url: http://127.0.0.1:8080",
        "kind: scripted\n    local: false",
        "backends.glm.local",
        (5, 5),
        "unknown key local",
        "only backends of kind llama_cpp have it: leave it out; what is sent to a scripted one "
        "never leaves this machine",
    ),
    (
        "kind: llama_cpp\n    url: http://127.0.0.1:8080",
        "kind: litellm\n    model: a/b\n    latency: 1s",
        "backends.glm.latency",
        (6, 5),
        "unknown key latency",
        "only backends of kind scripted have it: leave it out",
    ),
    ("127.0.0.1:8080", "host\n    local: 'on'", "backends.glm.local", (6, 12), "true or false", ""),
    (
        "127.0.0.1:8080",
        "host\n    timeouts: {idle: 30}",
        "backends.glm.timeouts.idle",
        (6, 22),
        "read 30; a duration needs its unit",
        "write 30s",
    ),
    (
        "127.0.0.1:8080",
        "host\n    timeouts: {idle: 30, iddle: 1s}",
        "backends.glm.timeouts.iddle",
        (6, 26),
        "unknown key iddle",
        "did you mean idle?",
    ),
    ("glm:\n", "glm:\n  glm:\n", "backends.glm", (4, 3), "twice: first in line 3", "delete"),
    ("    url", "    kind: litellm\n    url", "backends.glm.kind", (5, 5), "first in line 4", ""),
    (
        "      ceiling",
        "      start: 4800\n      ceiling",
        "policies.fold.view.start",
        (10, 7),
        "9",
        "",
    ),
    ("start: 48000", "strat: 48000", "policies.fold.view.strat", (9, 7), "unknown key", "start?"),
    ("start: 48000", "split: 4800", "policies.fold.view.split", (9, 7), "split", "NAME.chapters"),
    ("start: 48000", "zzz: 4800", "policies.fold.view.zzz", (9, 7), "zzz", "allowed: unit, start"),
    ("ceiling: 56000", "ceiling: 560", "policies.fold.view.ceiling", (10, 16), "1,000 or more", ""),
    ("ceiling: 56000", "ceiling: 48000", "policies.fold.view.ceiling", (10, 16), "48,000", "raise"),
    (
        "ceiling: 56000",
        "keep: 31000",
        "policies.fold.view.keep",
        (10, 13),
        "= 31,000",
        "lower keep",
    ),
    (
        "ceiling: 56000",
        "Keep: 1600",
        "policies.fold.view.Keep",
        (10, 7),
        "unknown key Keep",
        "keep?",
    ),
    ("ceiling: 56000", "unit: token", "policies.fold.view.unit", (10, 13), "'tokens'", "tokens?"),
    ("  fold:\n", "  fold:\n    name: x\n", "policies.fold.name", (8, 5), "unknown key name", ""),
    ("  fold:\n", "  fold:\n    keep_warm: yes\n", "policies.fold.keep_warm", (8, 16), "yes", ""),
    ("  fold:\n", "  fold:\n    ttl: 30\n", "policies.fold.ttl", (8, 10), "its unit", "write 30s"),
    ("  fold:\n", "  fold:\n    ttl: 365s\n", "policies.fold.ttl", (8, 10), "3,600 or more", ""),
    ("  fold:\n", "  fold:\n    gist: 15\n", "policies.fold.gist", (8, 11), "a mapping: lines", ""),
    ("  fold:\n", "  fold:\n    gist:\n", "policies.fold.gist", (8, 5), "read nothing", "write {}"),
    (
        "  fold:\n",
        "  fold:\n    chapters: {length: 400, split: 300}\n",
        "policies.fold.chapters.length",
        (8, 24),
        "length 400 is not below split 300",
        "raise split",
    ),
    (
        "  fold:\n",
        "  fold:\n    chapters:\n      stack: 30_000\n",
        "policies.fold.chapters",
        (8, 5),
        "1,500 + 30,000 = 31,500 is not below view.start − view.headroom = 48,000 − 17,000",
        "lower chapters.stack",
    ),
    (
        "  fold:\n",
        "  fold:\n    summaries: {backends: glm}\n",
        "policies.fold.summaries.backends",
        (8, 27),
        'read "glm"; allowed is a list',
        'write ["glm"]',
    ),
    (
        "  fold:\n",
        "  fold:\n    summaries: {backends: [gml]}\n",
        "policies.fold.summaries.backends[0]",
        (8, 28),
        'read "gml"; there is no backend of this name',
        "did you mean glm?",
    ),
    (
        "  fold:\n",
        "  fold:\n    summaries: {redraws: 1.5}\n",
        "policies.fold.summaries.redraws",
        (8, 26),
        "read 1.5; allowed is a whole number",
        "",
    ),
    (
        "  chat:\n",
        "  chat:\n    allow_clowd: false\n",
        "models.chat.allow_clowd",
        (13, 5),
        "un",
        "",
    ),
    ("  chat:\n", "  chat:\n    privat: true\n", "models.chat.privat", (13, 5), "", "private?"),
    ("  chat:\n", "  chat:\n    private: 1\n", "models.chat.private", (13, 14), "1;", "write true"),
    (
        "  chat:\n",
        "  chat:\n    rules: [{}]\n",
        "models.chat.rules[0].name",
        (13, 13),
        "the key name is missing here",
        "x-foldgate-rule",
    ),
    *(
        ("  chat:\n", f"  chat:\n    rules: [{{name: r, tier: {rest}}}]\n", path, place, said, hint)
        for rest, path, place, said, hint in (
            ("gml", "models.chat.rules[0].tier", (13, 29), '"gml"; there is no tier', "glm?"),
            ("zzz", "models.chat.rules[0].tier", (13, 29), "no tier", "the model has: glm"),
            ("glm, wen: {}", "models.chat.rules[0].wen", (13, 34), "unknown key wen", "when?"),
            ("glm, when: {tags: a}", "models.chat.rules[0].when.tags", (13, 41), "tags", "tag?"),
            (
                "glm, when: {tag: 7}",
                "models.chat.rules[0].when.tag",
                (13, 46),
                "a list",
                "write [7]",
            ),
            ("glm, when: {tag: ['']}", "models.chat.rules[0].when.tag[0]", (13, 47), "empty", ""),
            ("glm, when: {tag: ''}", "models.chat.rules[0].when.tag", (13, 46), "empty", ""),
            ("glm, when: {tag: []}", "models.chat.rules[0].when.tag", (13, 46), "one entry", ""),
            ("glm, when: {days: sonday}", "models.chat.rules[0].when.days", (13, 47), "'mon'", ""),
            ("glm, when: {days: tus}", "models.chat.rules[0].when.days", (13, 47), "'mon'", "tue?"),
            (
                "glm, when: {days: [sat, on]}",
                "models.chat.rules[0].when.days[1]",
                (13, 53),
                "on",
                "",
            ),
            (
                "glm, when: {hours: 22-6}",
                "models.chat.rules[0].when.hours",
                (13, 48),
                'read "22-6"; allowed are hours such as 22:00-06:00',
                "write 22:00-06:00",
            ),
            (
                "glm, when: {hours: 22:00}",
                "models.chat.rules[0].when.hours",
                (13, 48),
                "a number to the base 60",
                "quotes",
            ),
            (
                "glm, when: {hours: ['08:00-08:00']}",
                "models.chat.rules[0].when.hours[0]",
                (13, 49),
                "begin when they end",
                "leave hours out",
            ),
            (
                "glm, when: {chars: 100000}",
                "models.chat.rules[0].when.chars",
                (13, 48),
                "a mapping",
                "",
            ),
            (
                "glm, when: {chars: {}}",
                "models.chat.rules[0].when.chars",
                (13, 41),
                "over or under is needed",
                "over: 100_000",
            ),
            (
                "glm, when: {chars: {over: 9, under: 10}}",
                "models.chat.rules[0].when.chars.under",
                (13, 65),
                "no length is over 9 and under 10",
                "",
            ),
            (
                "glm, when: {chars: {over: 9k}}",
                "models.chat.rules[0].when.chars.over",
                (13, 55),
                "needs its unit",
                "write 9k chars",
            ),
            (
                "glm, when: {header: {X-Mode: [a, 7]}}",
                "models.chat.rules[0].when.header.X-Mode[1]",
                (13, 62),
                "allowed is text",
                'put it in quotes: "7"',
            ),
            (
                "glm, when: {header: {Authorization: a}}",
                "models.chat.rules[0].when.header.Authorization",
                (13, 65),
                "a key must not stand in this file",
                "owner tells",
            ),
            (
                "glm, when: {header: {ヘッダ: a}}",
                "models.chat.rules[0].when.header.ヘッダ",
                (13, 55),
                "no name of a header",
                "X-My-Header",
            ),
            (
                "glm, when: {model: chit}",
                "models.chat.rules[0].when.model",
                (13, 48),
                'read "chit"; there is no model of this name',
                "did you mean chat?",
            ),
            (
                "glm, when: {unhealthy: [glm, deepsek]}",
                "models.chat.rules[0].when.unhealthy[1]",
                (13, 58),
                "no backend of this name",
                "backends has: glm",
            ),
            ("glm, sticky: 1", "models.chat.rules[0].sticky", (13, 42), "true or false", "true"),
        )
    ),
    (
        "  chat:\n",
        "  chat:\n    rules: [{name: a b, tier: glm}]\n",
        "models.chat.rules[0].name",
        (13, 20),
        "letters, digits",
        "ASCII",
    ),
    (
        "  chat:\n",
        "  chat:\n    rules: [{name: home, tier: glm}]\n",
        "models.chat.rules[0].name",
        (13, 20),
        "no rule decided",
        "taken are: route",
    ),
    (
        "  chat:\n",
        "  chat:\n    rules: [{name: a, tier: glm}, {name: a, tier: glm}]\n",
        "models.chat.rules[1].name",
        (13, 42),
        "another rule of this model has this name",
        "which rule decided",
    ),
    (
        "  chat:\n",
        "  chat:\n    aliases: [talk, chat]\n",
        "models.chat.aliases[1]",
        (13, 21),
        'read "chat"; the model chat is asked for by this name already',
        "another name",
    ),
    ("  chat:\n", "  chat:\n    aliases: [a b]\n", "models.chat.aliases[0]", (13, 15), "", "ASCII"),
    ("  chat:\n", "  a b:\n", "models.a b", (12, 3), "a name is 1 to 128 letters", "ASCII"),
    ("  chat:\n", "  no:\n", "models", (12, 3), "a key must be text", "quotes"),
    ("  chat:\n", "  7:\n", "models", (12, 3), "a key must be text: this is a number", "quotes"),
    ("  chat:\n", "  [a]:\n", "models", (12, 3), "a key must be text, not a list", ""),
    ("  chat:\n", '  "a\\tb":\n', "models", (12, 3), "cannot be seen", ""),
    (
        "\n      - {backend: glm, policy: fold}",
        " []",
        "models.chat.tiers",
        (13, 12),
        "one entry",
        "",
    ),
    ("backend: glm", "backend: gml", "models.chat.tiers[0].backend", (14, 19), '"gml"', "glm?"),
    ("policy: fold", "policy: fild", "models.chat.tiers[0].policy", (14, 32), '"fild"', "fold?"),
    (", policy: fold", "", "models.chat.tiers[0].policy", (14, 9), "policy is missing", ""),
    (", policy: fold", ", policy: {}", "models.chat.tiers[0].policy", (14, 32), "a mapping;", ""),
    ("{backend: glm, policy: fold}", "glm", "models.chat.tiers[0]", (14, 9), "a mapping:", ""),
    ("{backend: glm, policy: fold}", "{backend: glm, policy: ${P}}", "", (14, 33), "", '"${NAME}"'),
]


@pytest.mark.parametrize(("old", "new", "path", "place", "message", "hint"), WRONG)
def test_a_wrong_file_is_told_where_and_how(old, new, path, place, message, hint):
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    found = [one for one in problems(text) if (one.line, one.column) == place]
    assert path in [one.path for one in found]
    (problem,) = (one for one in found if one.path == path)
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "the file is empty"),
        (" \n\n", (1, 1), "the file is empty"),
        ("# nothing\n", (1, 1), "the file holds only comments"),
        ("- a\n", (1, 1), "the file is a list"),
        ("hello\n", (1, 1), "the file is plain text"),
        ("a:\u00a01\n", (1, 3), "NO-BREAK SPACE"),
        ("start：48000\n", (1, 6), "： is not the : of YAML"),
        ("fold:\n\tstart: 1\n", (2, 1), "TAB"),
        ("a: 1\n---\nb: 2\n", (2, 1), "a second document"),
        ("a: &a [*a]\n", (1, 8), "would never end"),
    ],
)
def test_a_file_of_another_shape_is_told_as_such(text, place, message):
    (problem,) = problems(text)
    assert (problem.line, problem.column) == place
    assert message in problem.message


def test_sections_of_another_shape_are_told_all_at_once():
    found = problems("version: 1\nbackends: []\npolicies: x\nmodels:\n")
    assert [(one.line, one.column, one.path) for one in found] == [
        (2, 11, "backends"),
        (3, 11, "policies"),
        (4, 1, "models"),
    ]
    found = problems("version: 1\nbackends: {}\n")
    assert [(one.line, one.path) for one in found] == [
        (1, "models"),
        (1, "policies"),
        (2, "backends"),
    ]


def test_all_problems_of_a_file_come_at_once_in_the_order_of_its_lines():
    text = """\
version: 1
backends:
  glm: {kind: llama_cpp, url: "http://127.0.0.1:8080", slot: pinned}
  cloud:
    kind: litellm
    model: 4_5
    api_key: ${CLOUD_KEY}
policies:
  fold:
    view: {start: 48k, ceiling: 560}
    summaries: {backends: [glmm], delay: 30}
models:
  chat:
    privat: true
    tiers:
      - {backend: cloud, policy: fold}
      - {backend: clod, policy: flod}
"""
    assert [(one.line, one.column, one.path) for one in problems(text)] == [
        (3, 56, "backends.glm.slot"),
        (6, 12, "backends.cloud.model"),
        (7, 14, "backends.cloud.api_key"),
        (10, 19, "policies.fold.view.start"),
        (10, 33, "policies.fold.view.ceiling"),
        (11, 28, "policies.fold.summaries.backends[0]"),
        (11, 42, "policies.fold.summaries.delay"),
        (14, 5, "models.chat.privat"),
        (17, 19, "models.chat.tiers[1].backend"),
        (17, 33, "models.chat.tiers[1].policy"),
    ]


def test_a_comma_between_brackets_is_explained_where_it_split_a_number():
    text = GOOD.replace("  fold:\n", "  fold:\n    chapters: {stack: 6,000, length: 1,100}\n")
    hints = [one.hint for one in problems(text)]
    assert hints.count("a comma begins the next entry here: write 48_000, not 48,000") == 2


def test_an_unknown_key_is_told_beside_its_unreadable_value():
    found = problems(GOOD.replace("start: 48000", "fold_at: 010"))
    assert [(one.column, one.path) for one in found] == [
        (7, "policies.fold.view.fold_at"),
        (16, "policies.fold.view.fold_at"),
    ]


def test_a_value_that_cannot_be_read_brings_no_second_problem():
    # Without its start the view would be judged by the default of 48,000.
    text = GOOD.replace("start: 48000", "start: 010").replace("56000", "40000")
    assert [one.path for one in problems(text)] == ["policies.fold.view.start"]


def test_a_privacy_switch_holds_whatever_else_is_wrong():
    cloud = "  cloud: {kind: litellm, model: x/y, widow: 5}\npolicies:"
    text = GOOD.replace("policies:", cloud, 1).replace(
        "    tiers:", "    private: true\n    tiers:\n      - {backend: cloud, policy: fold}"
    )
    assert [(one.line, one.path) for one in problems(text)] == [
        (6, "backends.cloud.widow"),
        (16, "models.chat.tiers[0].backend"),
    ]


# ── anchors and merges ────────────────────────────────────────────────────────────────────────


def test_a_merge_takes_one_level_and_what_is_missing_has_its_default():
    text = """\
x-base: &base
  view: {start: 40000, headroom: 9000}
  keep_warm: true
""" + GOOD.replace("  fold:\n", "  fold:\n    <<: *base\n")
    policy = load(text).file.policies["fold"]
    assert policy.keep_warm
    # view is written there and replaces the merged one whole: its headroom is the default.
    assert (policy.view.start, policy.view.headroom) == (48_000, 17_000)


def test_of_merged_mappings_the_first_wins_and_what_is_written_wins_over_all():
    text = """\
x-one: &one {start: 40000, ceiling: 60000}
x-two: &two {start: 41000, headroom: 9000, ceiling: 61000}
""" + GOOD.replace("      start: 48000\n", "      <<: [*one, *two]\n")
    view = load(text).file.policies["fold"].view
    assert (view.start, view.ceiling, view.headroom) == (40_000, 56_000, 9_000)


def test_only_a_mapping_can_be_merged_and_only_once():
    text = GOOD.replace("      start", "      <<: [{keep: 1000}, 5]\n      <<: {}\n      start")
    assert [(one.line, one.column, one.path) for one in problems(text)] == [
        (9, 26, "policies.fold.view.<<"),
        (10, 7, "policies.fold.view.<<"),
    ]


def test_what_is_wrong_behind_an_anchor_is_told_once():
    text = GOOD.replace("  fold:", "  fold: &fold").replace("48000", "48k")
    text = text.replace("models:", "  other: *fold\nmodels:")
    (problem,) = problems(text)
    assert (problem.line, problem.column) == (9, 14)


def test_keys_for_anchors_stand_at_the_top_only():
    assert load("x-note: {anything: [010, yes, $]}\n" + GOOD)
    (problem,) = problems(GOOD.replace("  fold:\n", "  fold:\n    x-note: 1\n"))
    assert problem.path == "policies.fold.x-note"


# ── variables and secrets ─────────────────────────────────────────────────────────────────────

KEYED = GOOD.replace("    url:", "    api_key: ${KEY}\n    url:")


@pytest.mark.parametrize("value", ["sk-1", "a:b#c\"d'", "${KEY}", "$$", "*x", "{}", "yes", "010"])
def test_a_variable_is_inserted_after_parsing_as_it_is(value):
    assert load(KEYED, KEY=value).file.backends["glm"].api_key.get_secret_value() == value


def test_a_variable_that_is_missing_or_empty_is_named():
    (problem,) = problems(KEYED)
    assert (problem.line, problem.column, problem.path) == (5, 14, "backends.glm.api_key")
    assert problem.message == "the environment variable KEY is not set"
    (problem,) = problems(KEYED, KEY="")
    assert problem.message == "the environment variable KEY is set but empty"
    assert load(KEYED.replace("${KEY}", "${KEY:-}")).file.backends["glm"].api_key is None


def test_a_size_may_come_from_a_variable():
    text = GOOD.replace("48000", "${START:-47_000}")
    assert load(text).file.policies["fold"].view.start == 47_000
    assert load(text, START="46k chars").file.policies["fold"].view.start == 46_000


SECRET = "geheim-4711-Schlüssel"


@pytest.mark.parametrize(
    "line",
    [
        "api_key: SECRET",
        "api_key: SECRET #x",
        "api_key: [SECRET]",
        "api_key: {SECRET: 1}",
        "api_key: 'SECRET",
        "api_key: *SECRET",
        "api_key: !SECRET x",
        "api_key: @SECRET",
        "api_key: {{ SECRET }}",
        "api_key: x: SECRET",
        'api_key: "\\SECRET"',
        "api_key: ${SECRET",
        "url: http://me:SECRET@host",
        "url: SECRET",
        "api_base: SECRET",
        "apikey: SECRET",
        "timeouts: sk-SECRET",
        "kind: ${VAR}",
        "slots: ${VAR}",
        "window: ${VAR}",
        "strict_roles: ${VAR}",
        "max_output: ${VAR:-}",
        "url: ${VAR}",
        "api_key: ${VAR}",
        "timeouts: {idle: '${VAR}'}",
        "model: ${VAR}\n    zzz: 1",
    ],
)
def test_no_message_shows_a_secret(line):
    text = GOOD.replace("    url: http://127.0.0.1:8080", "    " + line.replace("SECRET", SECRET))
    with pytest.raises(PolicyFileError) as caught:
        load(text, VAR=SECRET)
    error = caught.value
    assert SECRET not in str(error) + repr(error) + repr(error.problems)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_name_from_a_variable_that_is_not_there_is_not_shown():
    text = GOOD.replace("backend: glm", 'backend: "${VAR}"')
    (problem,) = problems(text, VAR=SECRET)
    assert problem.message == "read text from ${VAR}; there is no backend of this name"


def test_a_comment_that_cuts_a_key_off_is_told():
    text = GOOD.replace("    url:", "    api_key: abc #def\n    url:")
    (problem,) = problems(text)
    assert (problem.line, problem.column) == (5, 17)
    assert "cuts the key off" in problem.message
    assert load(text.replace("#def", "# mine"))


# ── lookups ───────────────────────────────────────────────────────────────────────────────────

LOOKUP = GOOD.replace(
    "models:",
    "    recall: {lookups: [crm]}\nlookups:\n  crm:\n    url: http://127.0.0.1:9/x\nmodels:",
)


def test_a_lookup_s_headers_may_come_from_variables_and_are_secrets():
    text = LOOKUP.replace("127.0.0.1:9/x", '127.0.0.1:9/x\n    headers: {Authorization: "${A:-}"}')
    one, other, none = load(text, A="Bearer eins"), load(text, A="Bearer zwei"), load(text)
    assert one.revision == other.revision
    assert one.file != other.file
    assert "eins" not in repr(one)
    assert none.file.lookups["crm"].headers["Authorization"].get_secret_value() == ""


def test_a_header_that_cannot_be_sent_is_told_without_its_value():
    text = LOOKUP.replace("9/x", f'9/x\n    headers: {{Authorization: "{SECRET}ß"}}')
    (problem,) = problems(text)
    assert (problem.line, problem.path) == (15, "lookups.crm.headers")
    assert "the value of Authorization holds" in problem.message
    assert SECRET not in str(problem)


def test_a_comment_that_cuts_a_header_off_is_told():
    (problem,) = problems(LOOKUP.replace("9/x", "9/x\n    headers:\n      X-Key: abc #def"))
    assert "cuts the key off" in problem.message


def test_lookups_that_are_not_there_are_told_beside_other_problems():
    text = LOOKUP.replace("[crm]", "[crn]").replace("start: 48000", "start: x")
    assert {problem.path for problem in problems(text)} == {
        "policies.fold.view.start",
        "policies.fold.recall.lookups[0]",
    }
    told = problems(
        LOOKUP.replace("    url: http://127.0.0.1:9/x", "    uri: http://127.0.0.1:9/x")
    )
    assert any("unknown key uri" in problem.message for problem in told)


# ── the file on the disk ──────────────────────────────────────────────────────────────────────


def test_a_file_that_cannot_be_read_is_a_problem_of_its_own(tmp_path):
    with pytest.raises(PolicyFileError, match="the file cannot be read: No such file"):
        load_policies(tmp_path / "none.yaml", {})
    with pytest.raises(PolicyFileError, match="the file cannot be read"):
        load_policies(tmp_path, {})


def test_a_file_beyond_all_measure_is_not_read(tmp_path):
    path = tmp_path / "policies.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(PolicyFileError, match="larger than 1,048,576 bytes"):
        load_policies(path, {})
    path.write_text(GOOD + "#" * (MAX_BYTES - len(GOOD)), encoding="utf-8")
    assert load_policies(path, {}).file == load(GOOD).file


def test_another_encoding_is_told_at_its_first_byte(tmp_path):
    path = tmp_path / "policies.yaml"
    path.write_bytes("# 名\n# né\n".encode() + "# né".encode("latin-1"))
    with pytest.raises(PolicyFileError) as caught:
        load_policies(path, {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, 4)
    assert problem.message == "the byte 0xe9 is not UTF-8"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 6_000))
def test_a_file_cut_off_while_it_was_saved_is_refused_or_lacks_its_end(length):
    text = SHIPPED.read_text(encoding="utf-8")
    cut = text[: min(length, len(text.rstrip()) - 1)]
    try:
        assert not load(cut).ended
    except PolicyFileError as error:
        assert error.problems


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(max_size=8))
@example(0, 0, "\ud800")
@example(len(GOOD), 0, "\n<<: 5")
def test_no_edit_of_a_file_does_worse_than_problems(start, length, put):
    try:
        loaded = load(GOOD[:start] + put + GOOD[start + length :])
    except PolicyFileError as error:
        assert all(one.line >= 1 and one.column >= 1 and one.message for one in error.problems)
    else:
        assert len(loaded.revision) == 16


def test_a_name_of_the_owner_is_no_unknown_key_where_its_value_cannot_be_read():
    (problem, *_) = problems(GOOD.replace("models:\n", "models:\n  night: no\n"))
    assert (problem.line, problem.column, problem.path) == (12, 10, "models.night")
    assert "true or false" in problem.message


# ── documents ─────────────────────────────────────────────────────────────────────────────────


def with_documents(tmp_path, *names):
    path = tmp_path / "policies.yaml"
    listed = "".join(f"\n      - {name}" for name in names)
    path.write_text(GOOD.replace("  fold:\n", f"  fold:\n    documents:{listed}\n"))
    return path


def test_documents_are_read_from_beside_the_file(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "house.md").write_text("\ufeff規則：\r\n静かに。", newline="")
    elsewhere = tmp_path / "z.txt"
    elsewhere.write_text("Правила")
    path = with_documents(tmp_path, "rules/house.md", elsewhere)
    loaded = load_policies(path, {})
    assert [(one.name, one.text) for one in loaded.documents["fold"]] == [
        ("house.md", "規則：\r\n静かに。"),
        ("z.txt", "Правила"),
    ]
    elsewhere.write_text("Другие правила")
    assert load_policies(path, {}).revision != loaded.revision
    assert load(GOOD).documents == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the document cannot be read: No such file or directory"),
        (b"", "the document is empty"),
        (b"\n \n", "the document is empty"),
        (b"abc\xff", "the document's byte 3, 0xff, is not UTF-8"),
        (b"a\x00b", "the document holds a NUL character: it is no text"),
        (b"x" * (1024 * 1024 + 1), "the document is larger than 1,048,576 bytes"),
    ],
)
def test_a_document_that_cannot_be_used_has_its_line(tmp_path, content, message):
    (tmp_path / "good.md").write_text("good")
    if content is not None:
        (tmp_path / "bad.md").write_bytes(content)
    with pytest.raises(PolicyFileError) as caught:
        load_policies(with_documents(tmp_path, "good.md", "bad.md"), {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.path) == (10, 9, "policies.fold.documents[1]")
    assert problem.message == message


def test_a_folder_and_a_name_that_comes_twice_are_no_documents(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.md").write_text("x")
    (tmp_path / "x.md").write_text("x")
    with pytest.raises(PolicyFileError) as caught:
        load_policies(with_documents(tmp_path, "x.md", "a/x.md", "a"), {})
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (10, "another document of this policy has the same file name"),
        (11, "the document cannot be read: Is a directory"),
    ]


def test_documents_must_fit_the_view_together(tmp_path):
    """31,000 after a fold − 16,000 verbatim − 1,500 gist − 6,000 stack − 1,000 profile − 1,000
    ledger = 5,500; around each text stand its name, 4, and 40 more."""
    (tmp_path / "a.md").write_text("я" * 2_700)
    (tmp_path / "b.md").write_text("語" * 2_712)
    path = with_documents(tmp_path, "a.md", "b.md")
    assert len(load_policies(path, {}).documents["fold"]) == 2
    (tmp_path / "b.md").write_text("語" * 2_713)
    with pytest.raises(PolicyFileError) as caught:
        load_policies(path, {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (9, "policies.fold.documents")
    assert problem.message.startswith("the documents have 5,501 characters together, and 5,500 is")
