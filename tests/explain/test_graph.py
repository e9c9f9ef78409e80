"""The graph that `explain` shows is the one that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate import rules
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.explain.explanation import explain

HEAD = "rulebook: g\nevents:\n" + "".join(
    f"  {name}: {{signal: {{k: bigint}}}}\n" for name in ("a", "b", "c", "t")
)


def explained(tmp_path: Path, **on: str) -> dict[str, Any]:
    lines = "".join(f"  {name}: {{{text}}}\n" for name, text in on.items())
    (tmp_path / "g.yaml").write_text(f"{HEAD}rules:\n{lines}")
    found: dict[str, Any] = json.loads(explain(tmp_path / "g.yaml", None, "json"))
    return found


def below(found: dict[str, Any], root: str) -> list[dict[str, Any]]:
    nodes = {node["id"]: node for node in found["nodes"]}
    ids, ahead = set(), [root]
    while ahead:
        ids.add(id_ := ahead.pop())
        ahead += nodes[id_]["operands"]
    return [nodes[id_] for id_ in ids]


def test_g09_nodes_are_the_detectors_by_their_digests(tmp_path: Path) -> None:
    found = explained(
        tmp_path,
        r="on: '((b and a) ; c) - t', per: k",
        q="on: '(a and b) ; c', per: k",
        s="on: '(a and b) ; c', per: k, context: chronicle",
    )
    book = rules.load((tmp_path / "g.yaml").read_text())
    graph = Detector(book, dict.fromkeys(book.rules, 0)).graph
    assert {node["id"] for node in found["nodes"]} == {digest[:12] for digest in graph.nodes}
    roots = {name: graph.roots[name].digest[:12] for name in book.rules}
    assert {rule["name"]: rule["root"] for rule in found["rules"]} == roots
    (shared,) = (n for n in found["nodes"] if n["operator"] == "and")
    assert shared["rules"] == ["r", "q"]


def test_s09_every_row_of_plain_events_is_shown(tmp_path: Path) -> None:
    found = explained(tmp_path, r="on: 'A*(a, b or L:(c), t) or any(2, (b or t)*)'")
    shown = {node["expression"]: node["operator"] for node in found["nodes"]}
    assert {name: shown[name] for name in ("a", "b", "c", "t", "b or c", "b or t")} == {
        "a": "event",
        **dict.fromkeys(("b", "c", "t"), "every row"),
        **dict.fromkeys(("b or c", "b or t"), "or"),
    }


@pytest.mark.parametrize(
    "rule",
    [
        "on: '(a and b) ; (a and c)'",
        "on: 'any(2, a, b, c) within 5 - (b ; c)', per: k",
        "on: 'not(b ; b)[a, c and t]', per: k",
        "on: 'A(a, b ; c, t)'",
        "on: 'every(3, any(2, a*))'",
        "on: '(a ; b) - (b and c within 3)', context: recent",
        "on: 'a and b ; c', context: recent, per: k",
        "on: 'a ; b ; c within 5', context: recent, per: k",
    ],
)
def test_what_the_nodes_store_is_what_the_rule_stores(tmp_path: Path, rule: str) -> None:
    found = explained(tmp_path, r=rule)
    stores = next(iter(found["rules"][0]["stores"].values()))
    nodes = below(found, found["rules"][0]["root"])
    for name in ("instances_max", "occurrences_max"):
        each = [node[name] for node in nodes]
        assert stores[name] == (None if None in each else sum(each))


def test_the_choice_at_the_root_is_named_by_its_context(tmp_path: Path) -> None:
    found = explained(
        tmp_path,
        r="on: '(a or b) ; c within 5', context: cumulative",
        s="on: a ; b ; c, context: continuous",
    )
    roots = [next(n for n in found["nodes"] if n["id"] == r["root"]) for r in found["rules"]]
    assert [root["operator"] for root in roots] == ["cumulative", "continuous"]
    assert [root["span_micros"] for root in roots] == [5_000_000, None]
    assert {n["operator"] for n in below(found, roots[1]["id"])} == {"continuous", "every row"}


def test_what_is_searched_is_said_of_the_rule_and_of_the_node(tmp_path: Path) -> None:
    found = explained(
        tmp_path,
        r="on: a ; a within 5, context: unrestricted",
        s="on: a ; b, context: chronicle",
        q="on: 'every(2, A*(a, b, b ; c))'",
    )
    assert [rule["name"] for rule in found["rules"] if rule["searched"]] == ["r", "q"]
    searched = {node["expression"]: node["operator"] for node in found["nodes"] if node["searched"]}
    assert searched == {"(a ; a) within 5 s": "unrestricted", "b ; c": "unrestricted"}
    lines = explain(tmp_path / "g.yaml").splitlines()
    assert sum(line.startswith("  searched    ") for line in lines) == 2
    assert sum("  searched, " in f"{line} " for line in lines) == 2
    assert max(map(len, lines)) <= 100


def test_g13_broadcasts_repeated_for_each_key_are_warned_of(tmp_path: Path) -> None:
    found = explained(
        tmp_path, r="on: '((t - a) ; b) within 5 s', per: {a: k, b: k}, context: restricted"
    )
    assert "every key" in {node["operator"] for node in found["nodes"]}
    assert [warning["message"] for warning in found["warnings"]] == [
        "t takes no time: only a at the same microsecond is absent here",
        "'t' has no k: each of its occurrences goes to every k",
        "r never forgets: it keeps every key it has seen, to tell them apart",
    ]
    assert found["warnings"][-1]["hint"].startswith("it repeats `t` for each of them")
    assert found["rules"][0]["stores"]["restricted"]["forgets_micros"] is None
    assert (
        "Remembers at most 1 instance of each k with 1 occurrence, for ever."
        in (found["rules"][0]["sentences"])
    )


def test_g13_what_is_repeated_for_each_key_is_named_where_the_rule_begins_by_the_key(
    tmp_path: Path,
) -> None:
    found = explained(tmp_path, r="on: 'A*(a, b, t) within 5 s', per: {a: k}")
    (warning,) = (one for one in found["warnings"] if one["code"] == "never-forgets")
    assert warning["hint"].startswith("it repeats `b` and `t` for each of them: use")


def test_disabled_rules_are_shown_too(tmp_path: Path) -> None:
    found = explained(tmp_path, r="on: a ; b, enabled: false")
    assert [node["expression"] for node in found["nodes"]] == ["a", "b", "a ; b"]
