"""What every report of a backtest says beside its figures: what the past is, and what is not known
of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.core.text.layout import age_text, counted
from tidegate.engine.core.values import ENGINE
from tidegate.engine.replay.backtest.edited import left_out_text
from tidegate.engine.replay.backtest.report.labels import instant_label
from tidegate.engine.replay.backtest.run import Run
from tidegate.engine.replay.backtest.switches import SHOWN_MAX, switches_text
from tidegate.engine.store.placed import Parking
from tidegate.rules.model import Coupling, Rule, Rulebook, SignalEvent


def notes(
    book: Rulebook, run: Run, endless: Collection[str], *, warm_up: int, asked: int, stored: bool
) -> tuple[str, ...]:
    """The sentences. `endless`: rules that remember without a bound. `warm_up`: how long it was,
    `asked`: how long it should have been. `stored`: whether there is a store."""
    return tuple(_notes(book, run, endless, warm_up, asked, stored))


def _notes(
    book: Rulebook, run: Run, endless: Collection[str], warm_up: int, asked: int, stored: bool
) -> Iterator[str]:
    past, ledger = run.past, run.ledger
    every = [commit for table in past.tables.values() for commit in table.commits]
    commits = [commit for commit in every if not commit.skip]
    own = sum(commit.writer is not None for commit in commits)
    raised = sum(signal.namespace == ENGINE for signal in past.signals)
    signals = f", and {counted(raised, 'signal')} they raised" if raised else ""
    yield (
        f"The past contains what the real rules did: {own:,} of {counted(len(commits), 'commit')} "
        f"in it are theirs{signals}."
    )
    yield (
        "Instants are those of the store where it has them, else those of the tables' logs."
        if stored
        else "Instants are those of the tables' logs."
    )
    active = {rule.name for rule in book.rules.values() if rule.enabled}
    active |= {script.name for script in book.scripts.values() if script.enabled}
    yield from switches_text(past.switchings, active, book.timezone)
    yield from _parkings(past.parkings, active, book.timezone)
    yield from _reloads(past.reloads, book.timezone)
    yield from left_out_text(past.left_out)
    for name in sorted(past.reset):
        yield f"{name} was reset in it: where its versions stood before, the store does not know."
    if not stored:
        has_signals = any(isinstance(event, SignalEvent) for event in book.events.values())
        what = "Signals of clients, and what operators" if has_signals else "What operators"
        yield f"{what} switched off, are not known here: --store names the store that has them."
    if warm_up < asked:
        yield (
            f"The warm-up is {age_text(warm_up / 1e6)}, though rules remember "
            f"{age_text(asked / 1e6)}: the history begins there."
        )
    if endless:
        names = ", ".join(endless)
        yield (
            f"What {names} would remember from before the warm-up ({age_text(warm_up / 1e6)}) is "
            "not known: there is no bound to it. --warm-up lets it begin earlier."
        )
    if any(_asks_later(rule) for rule in book.rules.values()):
        yield "All queries of conditions are asked as of the instant of detection."
    if ledger.rejected:
        yield f"{counted(ledger.rejected, 'row')} could not become events and are left out."
    yield from _dead(run)
    for table in book.tables.values():
        if table.start.kind == "snapshot" and table.name in past.tables:
            yield f"What stood in {table.name} before is no event here (start: snapshot)."


def _parkings(found: Sequence[Parking], names: Collection[str], zone: str) -> Iterator[str]:
    """That limits had parked rules. `names`: those that run."""
    mine = [one for one in found if one.rule in names]
    for one in mine[:SHOWN_MAX]:
        end = "on" if one.end is None else f"to {_shown(one.end, zone)}"
        said = f"Rule {one.rule} was parked live from {_shown(one.begin, zone)} {end}"
        yield f"{said}, which is not repeated: {one.reason}."
    if (left := len(mine) - SHOWN_MAX) > 0:
        yield f"Rules were parked live {counted(left, 'more time')}."


def _reloads(found: Sequence[tuple[int, int]], zone: str) -> Iterator[str]:
    """That the rulebook was changed meanwhile."""
    said = [f"version {version} from {_shown(at, zone)} on" for version, at in found[:SHOWN_MAX]]
    if left := len(found) - len(said):
        said.append(f"and {counted(left, 'more version')}")
    if said:
        versions = ", ".join(said)
        yield f"The rulebook was changed live: {versions}. One text is tried here throughout."


def _shown(at: int, zone: str) -> str:
    return instant_label(floor_millisecond(at), zone)


def _asks_later(rule: Rule) -> bool:
    """Whether live its query sees what the end of a bucket decides."""
    query = rule.condition is not None and rule.condition.query
    return query and rule.condition_coupling is not Coupling.IMMEDIATE


def _dead(run: Run) -> Iterator[str]:
    """Why conditions could not be asked: the most frequent reason of each rule."""
    reasons: dict[str, Counter[str]] = {}
    for entry in run.ledger.store.entries.values():
        if entry.state == "dead" and entry.kind == "condition":
            error = entry.progress.error or ""
            reasons.setdefault(entry.rule, Counter())[error] += len(entry.firing_ids or ())
    for rule, counts in reasons.items():
        (error, _), *_ = counts.most_common(1)
        total = counted(counts.total(), "firing")
        yield f"The condition of {rule} could not be asked of {total}: {error}"
