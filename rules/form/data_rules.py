"""Rules beside a rulebook's text, each with a text of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tidegate.rules.errors import InputError, Problem
from tidegate.rules.yaml.reader import Fields, Node, read_yaml


def with_added(
    top: Fields, added: Mapping[str, str], bytes_max: int, fill: Callable[[Node], Node]
) -> Fields:
    """The nodes of a rulebook together with those of the rules in `added`: the YAML of each rule by
    its name. The YAML under a name like `alarm/x` holds keys that replace those of the rule
    `alarm`, if there is one. `fill`: fills in variables.

    The place of a problem names the rule instead of a file: `<rule alarm>:1:5`. Raises InputError.
    """
    if not added:
        return top
    rules = top.entries.get("rules")
    if not isinstance(rules, Fields):
        place = rules.place if rules is not None else replace(top.place, path="rules")
        rules = Fields(place, {}, {})
    entries: dict[str, Node] = dict(rules.entries)
    keys = dict(rules.keys)
    problems = []
    for path, text in sorted(added.items()):
        name, _, key = path.partition("/")
        shown = f"<rule {name}>"
        node, refused = read_yaml(text, shown, bytes_max, what="a rule", begin="on: EVENT")
        problems += refused
        filled = fill(node)
        node = filled if isinstance(filled, Fields) else node
        if not key:
            if name in entries:
                message = f"the rule {name!r} stands here, and was put beside this text, too"
                hint = f"`tidegate rules drop {name}`, or take it out here"
                problems.append(Problem("rule-twice", message, keys[name], hint))
            entries[name], keys[name] = node, node.place
        elif isinstance(rule := entries.get(name), Fields):
            kept = {**rule.entries, **node.entries}
            entries[name] = Fields(rule.place, kept, {**rule.keys, **node.keys})
    if problems:
        raise InputError(problems)
    found = Fields(rules.place, entries, keys)
    places = {**top.keys, "rules": top.keys.get("rules", rules.place)}
    return Fields(top.place, {**top.entries, "rules": found}, places)
