"""What a rulebook's actions may do to each other: termination and confluence (G22).

After Aiken, Widom and Hellerstein, "Behavior of database production rules": rules whose triggering
graph has no cycle end; rules that may be considered in either order must commute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING

from tidegate.rules.analysis.graph import later_ones, tangles
from tidegate.rules.analysis.triggers import TriggerCycle, Triggers
from tidegate.rules.errors import Place, Problem
from tidegate.rules.model import Coupling, Rule, Rulebook
from tidegate.rules.sql.statement import rule_writes

if TYPE_CHECKING:
    from tidegate.rules.sql.writes import Writes

SHOWN_MAX = 5  # warnings of each kind
PAIRS_MAX = 20_000  # that are looked at
_NAMES_MAX = 6


def cascade_warnings(book: Rulebook) -> Iterator[Problem]:
    """Warnings of rules that may trigger each other without end, and of pairs of rules without an
    order whose result in a table depends on which acts first."""
    triggers = Triggers(book)
    declared = [each for each in book.cycles if {*each[0]} <= book.rules.keys()]
    known = {place: triggers.among({*names}) for names, place in declared}
    yield from (
        _no_cycle(names, place) for names, place in declared if not _is_cycle(names, known[place])
    )
    undeclared = [
        loop
        for loop in triggers.loops()
        if not triggers.among({*loop.rules}) <= frozenset().union(*known.values())
    ]
    yield from _some([_endless(book, loop) for loop in undeclared], "cycles")
    yield from _some([*_unordered(book)], "pairs")


def _some(found: Sequence[Problem], what: str) -> Iterator[Problem]:
    yield from found[:SHOWN_MAX]
    more = len(found) - SHOWN_MAX
    if more > 0:
        first = found[SHOWN_MAX]
        message = f"and {more} more of these {what}"
        yield Problem(first.code, message, first.place, first.hint)


def _endless(book: Rulebook, loop: TriggerCycle) -> Problem:
    rules, through = _listed(loop.rules), _listed(loop.through)
    who = f"{rules} may trigger itself" if len(loop.rules) == 1 else f"{rules} trigger each other"
    limit = book.settings.max_cascade_depth
    message = f"{who} through {through}, on and on: max_cascade_depth ({limit}) ends it"
    hint = "let the events be of other columns (of: [..]) or rows (where:) than the actions write"
    if len(loop.rules) == 1 and loop.through[0].startswith("table"):
        hint += ", or write ignore_own: true"
    hint += f"; where it is meant: cycles: [[{', '.join(loop.rules)}]] at the rulebook's top"
    return Problem("termination", message, book.rules[loop.rules[0]].place, hint)


def _is_cycle(rules: Sequence[str], edges: Collection[tuple[str, str]]) -> bool:
    """Whether, by these edges, each rule can trigger every other, or a single one itself."""
    follows = {rule: [two for one, two in edges if one == rule] for rule in rules}
    return [{*tangle} for tangle in tangles(follows)] == [{*rules}]


def _no_cycle(rules: Sequence[str], place: Place) -> Problem:
    named = _listed(rules)
    message = f"{named} cannot trigger {'each other' if rules[1:] else 'itself'}"
    hint = "take it out of cycles:, or look for the event or the table that was meant"
    return Problem("no-cycle", message, place, hint)


def _unordered(book: Rulebook) -> Iterator[Problem]:
    """A problem for each pair of rules that may act in either order and do not commute."""
    acting = {
        name: found
        for name, rule in book.rules.items()
        if rule.enabled and (found := [*rule_writes(rule.reaction, book, otherwise=False)])
    }
    declared = {name.lower(): name for name in book.tables}
    pairs = [*islice(_pairs(declared.keys(), acting), PAIRS_MAX)]
    later = later_ones(book.rules) if pairs else {}
    for one, two in pairs:
        first, second = book.rules[one], book.rules[two]
        if _ordered(first, second, later):
            continue
        for mine in acting[one]:
            table = next(filter(None, (_disputed(mine, its) for its in acting[two])), None)
            if table is not None:
                yield _either(first, second, declared[table])
                break


def _pairs(declared: Set[str], acting: Mapping[str, Sequence[Writes]]) -> Iterator[tuple[str, str]]:
    """Pairs of rules of which one writes what the other writes or reads, each once."""
    writers: dict[str, dict[str, None]] = {}
    changers: dict[str, dict[str, None]] = {}  # of more than new rows
    readers: dict[str, dict[str, None]] = {}
    for rule, found in acting.items():
        for each in found:
            writers.setdefault(each.table, {})[rule] = None
            if not each.appends:
                changers.setdefault(each.table, {})[rule] = None
            for table in each.tables & declared:
                readers.setdefault(table, {})[rule] = None
    seen: set[tuple[str, str]] = set()
    at = {name: number for number, name in enumerate(acting)}
    for table in writers:
        changing, reading = changers.get(table, {}), readers.get(table, {})
        for one in writers[table]:
            for two in {**reading, **(writers[table] if one in changing else changing)}:
                pair = (one, two) if at[one] < at[two] else (two, one)
                if one != two and pair not in seen:
                    seen.add(pair)
                    yield pair


def _ordered(one: Rule, two: Rule, later: Mapping[str, Collection[str]]) -> bool:
    """Whether the rulebook says which of two rules acts first."""
    modes = {one.reaction.coupling, two.reaction.coupling}
    if Coupling.DETACHED in modes:
        return False
    tied = two.name in later.get(one.name, ()) or one.name in later.get(two.name, ())
    return len(modes) > 1 or one.precedence.priority != two.precedence.priority or tied


def _disputed(one: Writes, two: Writes) -> str | None:
    """The table over which two statements are in conflict."""
    if one.disturbs(two):
        return one.table
    return two.table if two.disturbs(one) else None


def _either(one: Rule, two: Rule, table: str) -> Problem:
    message = (
        f"{one.name} and {two.name} may act in either order, and {table} may differ by it: both"
        " write it, or one reads what the other writes"
    )
    hint = f"say it: precedes: {two.name} in {one.name}, or priority"
    if Coupling.DETACHED in (one.reaction.coupling, two.reaction.coupling):
        hint = f"detached actions have no order; firm is on: end_of {one.name} in {two.name}"
    return Problem("confluence", message, one.place, hint)


def _listed(names: Sequence[str]) -> str:
    shown = [
        *names[:_NAMES_MAX],
        *([f"{len(names) - _NAMES_MAX} more"] if names[_NAMES_MAX:] else []),
    ]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
