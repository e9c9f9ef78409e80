"""A rulebook's nodes from all that it is made of: its text, the files that it includes, its
variables, the rules that were put beside it, the defaults of its rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from tidegate.rules.errors import InputError, Problem
from tidegate.rules.form.data_rules import with_added
from tidegate.rules.form.includes import Includes, merged
from tidegate.rules.form.variables import Variables, declared
from tidegate.rules.yaml.reader import Fields, Node, Scalar, read_yaml

WITHOUT_DEFAULT = frozenset(
    {"on", "if", "do", "where", "description", "precedes", "follows", "disabled_for"}
)
"""Keys of a rule that are its own."""


def assembled(
    top: Fields,
    file: str | None,
    added: Mapping[str, str],
    files: Mapping[str, str],
    environment: Mapping[str, str] | None,
    bytes_max: int,
    problems: list[Problem],
) -> tuple[Fields, dict[str, str], tuple[str, ...], Variables]:
    """The nodes of a whole rulebook; the texts of files and the values of the environment that are
    kept with it, by name; the names of the files that it includes; and its variables, for the files
    of scripts. Raises InputError."""
    includes = Includes(file, files, bytes_max, problems)
    documents = includes.documents(top)
    known = declared(document.top for document in documents)
    variables = Variables(known, files, environment, bytes_max, problems)
    filled = [replace(one, top=variables.document(one.top)) for one in documents]
    whole = with_added(merged(filled, problems), added, bytes_max, variables.node)
    kept = {**includes.texts, **variables.used}
    return _with_defaults(whole), kept, tuple(includes.read), variables


def files_named(text: str, file: str, bytes_max: int) -> list[str]:
    """The paths of the files that a rulebook's text includes, and of the scripts that it names,
    even if it is refused, or they are, or there are none of these names."""
    try:
        top, _ = read_yaml(text, file, bytes_max)
        whole, _, included, _ = assembled(top, file, {}, {}, os.environ, bytes_max, [])
    except InputError:
        return []
    scripts = whole.entries.get("scripts")
    each = scripts.entries.values() if isinstance(scripts, Fields) else ()
    paths = [one.entries.get("file") for one in each if isinstance(one, Fields)]
    named = [path.text for path in paths if isinstance(path, Scalar) and path.text.strip()]
    folder = os.path.dirname(os.path.abspath(file))
    return [os.path.join(folder, name) for name in (*included, *named)]


def _with_defaults(top: Fields) -> Fields:
    given, rules = top.entries.get("defaults"), top.entries.get("rules")
    if not isinstance(given, Fields) or not isinstance(rules, Fields):
        return top
    usual = {n: node for n, node in given.entries.items() if n not in WITHOUT_DEFAULT}
    filled = {name: _filled(rule, usual, given) for name, rule in rules.entries.items()}
    return replace(top, entries={**top.entries, "rules": replace(rules, entries=filled)})


def _filled(rule: Node, usual: Mapping[str, Node], given: Fields) -> Node:
    if not isinstance(rule, Fields):
        return rule
    entries = {**usual, **rule.entries}
    own, labels = rule.entries.get("labels"), usual.get("labels")
    if isinstance(own, Fields) and isinstance(labels, Fields):
        both = {**labels.entries, **own.entries}
        entries["labels"] = Fields(own.place, both, {**labels.keys, **own.keys})
    keys = {name: given.keys[name] for name in usual}
    return Fields(rule.place, entries, {**keys, **rule.keys})
