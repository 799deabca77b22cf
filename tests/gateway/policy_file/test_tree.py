import tracemalloc

import pytest

from gateway.policy_file.tree import MAX_DEPTH, MAX_NODES, TreeError, build_tree


def refusal(text):
    with pytest.raises(TreeError) as caught:
        build_tree(text)
    problem = caught.value.problem
    return problem.line, problem.column, problem.message


def bomb(levels=9, width=9):
    lines = [f"l0: &l0 [{', '.join(['x'] * width)}]"]
    lines += (
        f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * width)}]"
        for level in range(1, levels + 1)
    )
    return "\n".join(lines)


def test_nodes_know_their_places_also_behind_wide_characters():
    root = build_tree("名: 😀b\nkey: [x, 'y']\n")
    places = [(node.line, node.column, node.source) for node in root.items[:3]]
    assert places == [(1, 1, "名"), (1, 4, "😀b"), (2, 1, "key")]
    listed = root.items[3]
    assert [(node.column, node.text, node.plain) for node in listed.items] == [
        (7, "x", True),
        (10, "y", False),
    ]


def test_an_alias_is_the_node_of_its_anchor():
    root = build_tree("a: &one {b: 1}\nc: *one\n")
    assert root.items[1] is root.items[3]
    assert root.nodes == 1 + 2 + 2 * 3


def test_aliases_that_multiply_are_refused_before_they_grow():
    # Ten lines that stand for 9 ** 10 = 3,486,784,401 leaves.
    tracemalloc.start()
    try:
        assert refusal(bomb())[2] == f"more than {MAX_NODES:,} keys and values, aliases followed"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_many_values_are_too_many_without_any_alias():
    half = "[" + ",".join("1" * (MAX_NODES // 2)) + "]"
    assert refusal(f"a: {half}\nb: {half}\n")[:2] == (2, 4)


def test_ten_ordinary_anchors_pass():
    text = "".join(f"a{n}: &a{n} {{x: {n}}}\n" for n in range(10))
    root = build_tree(text + "all: [" + ", ".join(f"*a{n}" for n in range(10)) + "]\n")
    assert len(root.items[-1].items) == 10


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a\n  - {x: [*a]}"])
def test_an_alias_inside_its_anchor_is_refused(text):
    assert "would never end" in refusal(text)[2]


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * (MAX_DEPTH + 1),
        "a: " + "[" * 100_000,
        "\n".join(" " * n + "a:" for n in range(MAX_DEPTH + 2)),
        "a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 20 + "*a" + "]" * 20,
    ],
)
def test_depth_is_bounded_with_and_without_aliases(text):
    assert f"more than {MAX_DEPTH} levels" in refusal(text)[2]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\n---\nb: 2\n", (2, 1), "a second document"),
        ("a: 1\n...\nb: 2\n", (3, 1), "behind the end of the document"),
        ("a: !!python/name:os.system x\n", (1, 4), "tags"),
        ("a: !!str 5\n", (1, 4), "tags"),
        ("a: !own {b: 1}\n", (1, 4), "tags"),
        ("a: *nobody\n", (1, 4), "names no anchor"),
        ("a: 'open\nb: 2\n", (1, 4), "never closed"),
        ("a:\n  b: 1\n c: 2\n", (3, 2), "the indentation"),
        ("a: b: c\n", (1, 5), "no key can stand"),
        ("a: 1\nb\n", (2, 2), "a key without its colon"),
        ("a: {k: ${X}}\n", (1, 9), "brackets"),
        ("a: [1, 2\nb: 3\n", (2, 2), "brackets"),
        ("a: @home\n", (1, 4), "no value can begin"),
        ("- a\nb: 1\n", (2, 1), "the indentation"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_place(text, place, words):
    line, column, message = refusal(text)
    assert (line, column) == place
    assert words in message


@pytest.mark.parametrize(
    "text",
    [
        "k: *geheim",
        "k: !geheim x",
        "k: 'geheim",
        "k: @geheim",
        "k: [geheim",
        'k: "\\geheim"',
        "k: geheim: geheim",
        "geheim\na: 1",
    ],
)
def test_no_fault_of_the_syntax_shows_the_line_it_stands_in(text):
    with pytest.raises(TreeError) as caught:
        build_tree(text)
    assert "geheim" not in repr(caught.value.problem)


def test_an_empty_text_has_no_tree():
    assert build_tree("# nothing\n") is None
