"""Asking that a rule or script is switched off or on (G24)."""

from __future__ import annotations

from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.model import Rulebook


def ask_for_rule(
    store: SqlStore, book: Rulebook, kind: str, rule: str, *, purge: bool = False
) -> None:
    """Ask for `enable` or `disable`. Raises InputError where that cannot change anything."""
    named = book.rules.get(rule) or book.scripts.get(rule)
    what = "script" if rule in book.scripts else "rule"
    if named is None:
        hint = did_you_mean(rule, [*book.rules, *book.scripts])
        message = f"the rulebook {book.name} has no rule or script `{rule}`"
        raise InputError([Problem("unknown-rule", message, word_place("RULE"), hint)])
    if not named.enabled:
        message = f"{what} `{rule}` is disabled in the rulebook"
        raise _refused(message, "write `enabled: true` there, and run it again")
    asked = [c.kind for c in store.pending_controls(book.name) if c.subject == rule]
    off = rule in store.disabled(book.name)
    if kind == "enable" and not (off or asked or rule in store.parked(book.name)):
        hint = "`tidegate status` lists the rules that are"
        raise _refused(f"{what} `{rule}` is not parked, and not disabled", hint)
    if kind == "disable" and off and not asked and not purge:
        raise _refused(f"{what} `{rule}` is disabled already", f"`tidegate enable {rule}` ends it")
    store.ask(book.name, kind, rule, option="purge" if purge else None)


def _refused(message: str, hint: str) -> InputError:
    return InputError([Problem("not-switched", message, word_place("RULE"), hint)])
