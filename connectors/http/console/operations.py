"""The buttons of the console: each asks first, on a page of its own, and says what would happen.

What is asked for is a row of the store with the key's name in it (`Controls`). An engine carries it
out at its next look, and answers there: the audit page shows it.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial

from tidegate.connectors.http.console.pages import KEY, Asked
from tidegate.connectors.http.refusal import Refusal
from tidegate.engine.control.requests import (
    ask_for_rule,
    ask_to_redrive,
    check_switch,
    open_entry,
    open_to_redrive,
)
from tidegate.engine.control.rulebooks import Rules, changed_text
from tidegate.engine.core.text.layout import counted, pairs_text
from tidegate.engine.store import KeptRulebook
from tidegate.rules.errors import InputError, Problem, word_place

ASKER = "console key {}"
"""How a request names who has asked for it."""
_CONTEXT = 3  # lines of a text around what is different


@dataclass(frozen=True, slots=True)
class Question:
    """What the page says before anything is asked for. `fixed`: fields that the form brings along.
    `options`: by field, what may be ticked. `command`: the same for a command line."""

    title: str
    button: str
    said: tuple[str, ...]
    command: str
    fixed: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    difference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """A button. `path`: under the console's own. `question`: raises InputError or Refusal where it
    would change nothing, or may not be. `carry_out`: asks the engine for it, given the form and who
    has sent it; returns the subject of the request, empty for several. `kind`: of the request.
    `back`: the page that it belongs to."""

    path: str
    kind: str
    question: Callable[[Asked], Question]
    carry_out: Callable[[Asked, Mapping[str, str], str], str]
    back: str


def asker(name: str) -> str:
    """Who asks, in the request's row."""
    return ASKER.format(name)


def _entry_question(asked: Asked, kind: str, said: str, options: Mapping[str, str]) -> Question:
    number = _number(asked)
    entry = open_entry(asked.store, asked.book, number)
    if kind == "redrive" and entry.rule not in asked.book.rules:
        message = f"rule {entry.rule} is gone, so that entry {number} can only be skipped"
        raise InputError([Problem("rule-gone", message, word_place("ENTRY"), "skip it")])
    why = (f"Its last error: {entry.progress.error}",) if entry.progress.error else ()
    return Question(
        f"{kind.capitalize()} entry {number} of rule {entry.rule}",
        kind.capitalize(),
        (f"It is {entry.state}, after {entry.progress.attempts} attempts.", *why, said),
        f"tidegate {kind} {number} --rulebook {asked.book.name}",
        options=options,
    )


def _skip(asked: Asked) -> Question:
    said = "It is given up: a seal in its target keeps it from ever landing. Later entries go on."
    options = {"unsealed": "even without a seal, because its target is gone"}
    return _entry_question(asked, "skip", said, options)


def _redrive(asked: Asked) -> Question:
    said = "It is sealed, and a new one runs in its place, with the rule's present text."
    options = {"may-double": "even if it may have landed already"}
    return _entry_question(asked, "redrive", said, options)


def _redrive_all(asked: Asked) -> Question:
    rule, book = asked.rule, asked.book
    some, _ = open_to_redrive(asked.store, book, rule, None)
    if not some:
        message = f"no entry of rule {rule} is dead or held that is not asked for already"
        problem = Problem("entry-finished", message, word_place("RULE"), "see the audit page")
        raise InputError([problem])
    states = Counter(one.state for one in some)
    are = " and ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    said = (
        "Each is sealed, and a new one runs in its place, with the rule's present text. What dies"
    )
    return Question(
        f"Redrive {counted(len(some), 'entry', 'entries')} of rule {rule}",
        "Redrive",
        (f"Of them are {are}.", said, "What dies or is held from now on is left as it is."),
        f"tidegate redrive --all {rule} --rulebook {book.name}",
        fixed={"last": str(some[-1].number)},
        options={"may-double": "even those that may have landed already"},
    )


def _take_all(asked: Asked, form: Mapping[str, str], by: str) -> str:
    """Ask for those that were shown."""
    option, last = "may-double" if "may-double" in form else None, form.get("last", "")
    some, _ = open_to_redrive(asked.store, asked.book, asked.rule, option)
    shown = [one for one in some if _is_number(last) and one.number <= int(last)]
    if not shown:
        message = "none of the entries that were shown is dead or held any more"
        raise Refusal(409, "stale-form", message, "look at what is stuck again")
    ask_to_redrive(asked.store, asked.book, shown, option, by)
    return ""


def _pass_over(kind: str, option: str) -> Callable[[Asked, Mapping[str, str], str], str]:
    def carry_out(asked: Asked, form: Mapping[str, str], by: str) -> str:
        number = _number(asked)
        _entry_question(asked, kind, "", {})  # raises
        chosen = option if option in form else None
        controls = asked.store.of(asked.book.name).controls
        controls.ask(kind, str(number), option=chosen, asked_by=by)
        return str(number)

    return carry_out


def _number(asked: Asked) -> int:
    text = asked.place["number"]
    if not _is_number(text):
        message = f"{text!r} is no entry's number"
        raise InputError([Problem("no-entry", message, word_place("ENTRY"), "see what is stuck")])
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _enable(asked: Asked) -> Question:
    rule, book = asked.rule, asked.book
    check_switch(asked.store, book, "enable", rule)
    said = "It starts anew at the instant of the request. Its texts in quarantine run again."
    command = f"tidegate enable {rule} --rulebook {book.name}"
    return Question(f"Enable rule {rule}", "Enable", (said,), command)


def _disable(asked: Asked) -> Question:
    rule, book = asked.rule, asked.book
    check_switch(asked.store, book, "disable", rule)
    said = "It stops, with the rules that use it as an event, for all that is not taken yet."
    command = f"tidegate disable {rule} --rulebook {book.name}"
    options = {"purge": "its open actions never run, too"}
    return Question(f"Disable rule {rule}", "Disable", (said,), command, options=options)


def _switch(kind: str) -> Callable[[Asked, Mapping[str, str], str], str]:
    def carry_out(asked: Asked, form: Mapping[str, str], by: str) -> str:
        purge = kind == "disable" and "purge" in form
        ask_for_rule(asked.store, asked.book, kind, asked.rule, purge=purge, asked_by=by)
        return asked.rule

    return carry_out


def _question_for_key(asked: Asked, *, off: bool) -> Question:
    rule, book, key = asked.rule, asked.book, asked.key
    Rules(asked.store, book.name).check_switch(rule, key, off=off)
    kind = "disable" if off else "enable"
    what = "It detects as before, but does not fire" if off else "It fires again"
    options = " ".join(f"--key {shlex.quote(f'{name}={text}')}" for name, text in key.items())
    return Question(
        f"{kind.capitalize()} rule {rule} for {pairs_text(key)}",
        kind.capitalize(),
        (f"{what} for this key, once the engine has taken over a version that says so.",),
        f"tidegate {kind} {rule} {options} --rulebook {book.name}",
        fixed={f"{KEY}{name}": text for name, text in key.items()},
    )


def _switch_for_key(*, off: bool) -> Callable[[Asked, Mapping[str, str], str], str]:
    def carry_out(asked: Asked, _: Mapping[str, str], by: str) -> str:
        rules = Rules(asked.store, asked.book.name, asked_by=by)
        return str((rules.disable_for if off else rules.enable_for)(asked.rule, asked.key))

    return carry_out


def _reload(asked: Asked) -> Question:
    book = asked.book
    kept, changed = changed_text(asked.store, book)
    if (kept.text, kept.files) == (changed.text, changed.files):
        message = f"the file of rulebook {book.name} says what version {kept.version} says"
        raise Refusal(409, "no-change", message, "change the file first")
    before, after = kept.known(), changed.known()
    return Question(
        f"Reload rulebook {book.name}",
        "Reload",
        (
            *asked.told.changes(before, after),
            "Rules that are as they were keep what they remember.",
        ),
        f"tidegate reload --rulebook {book.name}",
        fixed={"shown": _digest(kept, changed)},
        difference=tuple(_difference(kept, changed)),
    )


def _take_file(asked: Asked, form: Mapping[str, str], by: str) -> str:
    kept, changed = changed_text(asked.store, asked.book)
    version = None
    if form.get("shown") == _digest(kept, changed):
        versions = asked.store.of(asked.book.name).versions
        version = versions.propose(changed, kept.version, by)  # what was read, not the file anew
    if version is None:
        message = "the file, or the rulebook, has changed since its difference was shown"
        raise Refusal(409, "stale-form", message, "look at the difference again")
    return str(version)


def _difference(kept: KeptRulebook, changed: KeptRulebook) -> Iterator[str]:
    """The lines that are different, of the rulebook's text and of its files."""
    names = sorted(name for name in {**kept.files, **changed.files} if not name.startswith("${"))
    texts = [("rulebook", kept.text, changed.text)]
    texts += [(name, kept.files.get(name, ""), changed.files.get(name, "")) for name in names]
    for name, one, other in texts:
        ends = (f"{name}, version {kept.version}", f"{name}, its file now")
        yield from unified_diff(
            one.splitlines(), other.splitlines(), *ends, n=_CONTEXT, lineterm=""
        )


def _digest(kept: KeptRulebook, changed: KeptRulebook) -> str:
    """Of what is taken over, and of the version that it was compared with."""
    said = repr((kept.version, changed.text, sorted(changed.files.items())))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


_ENTRY, _RULE = "entries/{rulebook}/{number}", "rules/{rulebook}/{rule}"
OPERATIONS = (
    Operation(f"{_ENTRY}/skip", "skip", _skip, _pass_over("skip", "unsealed"), "stuck"),
    Operation(
        f"{_ENTRY}/redrive", "redrive", _redrive, _pass_over("redrive", "may-double"), "stuck"
    ),
    Operation(f"{_RULE}/redrive", "redrive", _redrive_all, _take_all, "stuck"),
    Operation(f"{_RULE}/enable", "enable", _enable, _switch("enable"), "stuck"),
    Operation(f"{_RULE}/disable", "disable", _disable, _switch("disable"), "rules"),
    *(
        Operation(
            f"{_RULE}/{verb}-for",
            "reload",
            partial(_question_for_key, off=off),
            _switch_for_key(off=off),
            "rules",
        )
        for verb, off in (("disable", True), ("enable", False))
    ),
    Operation("rulebooks/{rulebook}/reload", "reload", _reload, _take_file, "rules"),
)
