"""A rulebook's nodes from all that it is made of: its text, the files that it includes, its
variables, the rules that were put beside it, the defaults of its rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.form import texts
from tidegate.rules.form.data_rules import with_added
from tidegate.rules.form.includes import Includes, merged
from tidegate.rules.form.variables import Variables, declared
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar, check_size, read_yaml

SUFFIX = ".es"
_WORD = re.compile(r"\w+")
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


def with_rule(top: Fields, rule: str, texts: Mapping[str, str]) -> Fields:
    """The nodes of a rulebook with a part of its rules: `rule`, and the rules that use it. Added
    are the rules that one of these or a script names in its text. `texts`: of files of scripts."""
    rules = top.entries.get("rules")
    if not isinstance(rules, Fields):
        return top
    named = {
        name: {*_words(one.entries.get("on"))} & rules.entries.keys()
        for name, one in rules.entries.items()
        if isinstance(one, Fields)
    }
    ahead = [name for name, names in named.items() if name == rule or rule in names]
    scripts = top.entries.get("scripts")
    if scripts is not None:
        in_files = (word for text in texts.values() for word in _WORD.findall(text))
        words = {*_words(scripts), *_words(top.entries.get("vars")), *in_files}
        ahead += words & rules.entries.keys()
    kept = set[str]()
    while ahead:
        if (name := ahead.pop()) not in kept:
            kept.add(name)
            ahead += named.get(name, ())
    entries = {name: one for name, one in rules.entries.items() if name in kept}
    return replace(top, entries={**top.entries, "rules": replace(rules, entries=entries)})


def _words(node: Node | None) -> Iterator[str]:
    """The words in the texts of a node; keys are among them."""
    match node:
        case Scalar(text=text):
            yield from _WORD.findall(text)
        case Items(items=items):
            yield from (word for item in items for word in _words(item))
        case Fields(entries=entries):
            yield from entries
            yield from (word for entry in entries.values() for word in _words(entry))


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


def is_script(file: str | None) -> bool:
    """Whether a file holds a script alone, which is a rulebook of one script."""
    return file is not None and file.endswith(SUFFIX)


def as_rulebook(text: str, file: str, bytes_max: int) -> Fields:
    """The nodes of a rulebook with one script, from a file that holds the script alone. Rulebook
    and script get the file's name. Raises InputError if the text is too long."""
    check_size(text, file, bytes_max, "script")
    stem = re.sub(r"\W", "_", os.path.basename(file)[: -len(SUFFIX)], flags=re.ASCII)
    name = stem if re.fullmatch(texts.NAME, stem) else f"script_{stem}"
    place = Place(file)
    script = _fields(place, {"text": Scalar(place, text, '"', text)})
    scripts = _fields(place, {name: script})
    return _fields(place, {"rulebook": Scalar(place, name, ""), "scripts": scripts})


def _fields(place: Place, entries: dict[str, Node]) -> Fields:
    return Fields(place, entries, dict.fromkeys(entries, place))
