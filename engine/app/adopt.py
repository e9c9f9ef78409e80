"""Compares a store with the markers in its targets: a marker that it does not know stops the start
(G20)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.engine.capture.sources import sources
from tidegate.engine.core.markers import Marked, Marker, Markers
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.layout import age_text
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Doubt:
    """The markers that a store does not know, each with its table. `behind`: markers with the
    store's own id, of entries that it has forgotten. `others`: markers of the rulebook with the id
    of another store."""

    last_entry: int
    behind: tuple[tuple[str, Marker], ...]
    others: tuple[tuple[str, Marker], ...]

    @property
    def stores(self) -> frozenset[str]:
        return frozenset(marker.store for _, marker in (*self.behind, *self.others))


def find_doubt(rulebook: Rulebook, store: SqlStore, found: Sequence[Marked]) -> Doubt:
    """The markers among `found` that a store does not know.

    They must be read before the store is asked: a store draws an entry's number before its marker
    is written, and an engine of another rulebook may write on meanwhile.
    """
    last, known = store.last_entry(), store.of(rulebook.name).histories.stores() | {store.id}
    oldest = store.wall() - rulebook.settings.outbox_age_max_days * MICROS_PER_DAY
    standing = [(marked.table, marker) for marked in found for marker in marked.markers]
    own = [at for at in standing if at[1].store == store.id]
    others = [
        (table, marker)
        for table, marker in standing
        if marker.rulebook == rulebook.name
        and marker.store not in known
        and (marker.committed_at is None or marker.committed_at >= oldest)
    ]
    unknown = _unknown(store, last, [marker for _, marker in (*own, *others)])
    behind, foreign = (tuple(at for at in some if at[1] in unknown) for some in (own, others))
    return Doubt(last, behind, foreign)


def _unknown(store: SqlStore, last: int, markers: Collection[Marker]) -> set[Marker]:
    """The markers whose entries a store does not know. Of those with its own id, it has forgotten
    the entries with a number above its `last` one, and those whose number was drawn again for
    another rule. An entry that was merely purged is not forgotten."""
    app_ids = store.app_ids(marker.number for marker in markers)

    def is_known(marker: Marker) -> bool:
        own = marker.store == store.id
        kept = app_ids.get(marker.number, marker.app_id if own else None)
        return kept == marker.app_id and not (own and marker.number > last)

    return {marker for marker in markers if not is_known(marker)}


def check_store(
    rulebook: Rulebook, store: SqlStore, markers: Markers, targets: Collection[str]
) -> None:
    """Refuse to start on a store that does not know the markers in its targets.

    Raises EngineError `store-behind-effects`, `other-store`, `marker-retention`,
    `table-unreadable`.
    """
    found = markers.latest(sorted(targets))
    doubt = find_doubt(rulebook, store, found)
    if doubt.behind:
        raise _behind(rulebook, doubt)
    if doubt.others:
        raise _other_store(rulebook, doubt, store.wall())
    _check_retention(rulebook, found)


def adopt(
    rulebook: Rulebook, store: SqlStore, epoch: int, markers: Markers, *, repeat: bool
) -> dict[str, Any]:
    """`tidegate adopt`: list the markers in doubt, then give the store a new id under which it
    knows them. Where there is no doubt, nothing changes.

    `repeat`: what the store has forgotten will be done again. Otherwise it is skipped: every source
    is read from its head on, and waiting signals are dropped.
    """
    doubt = find_doubt(rulebook, store, markers.latest(sorted(rulebook.tables)))
    if not doubt.stores:
        says = "nothing to adopt: the store knows all markers in the rulebook's tables"
        return {"rulebook": rulebook.name, "adopted": False, "store_id": store.id, "result": says}
    listed = _listed(rulebook, store, markers, doubt)
    former = store.id
    passed = () if repeat else sources(rulebook).tables
    # Another store has its own inbox: it has not taken the signals that wait in this one.
    over = not repeat and bool(doubt.behind)
    signals, entries = store.adopt(rulebook.name, epoch, doubt.stores, passed, pass_signals=over)
    return {
        "rulebook": rulebook.name,
        "adopted": True,
        "store_id": store.id,
        "former_store_id": former,
        "last_entry": doubt.last_entry,
        "goes_on_from": "where the store stands" if repeat else "now",
        "signals_passed_over": signals,
        "raising_entries_passed_over": entries,
        "tables_passed_over": list(passed),
        **listed,
    }


def _listed(
    rulebook: Rulebook, store: SqlStore, markers: Markers, doubt: Doubt
) -> dict[str, list[dict[str, Any]]]:
    """The markers and commits in doubt, and the tables whose logs are too short to list them
    all."""
    rows, commits, cut = [], [], []
    for why, marked in (("store-behind-effects", doubt.behind), ("other-store", doubt.others)):
        ordered = sorted(marked, key=lambda at: (at[0], at[1].number))
        rows += [{"table": table, "why": why, **_shown(marker)} for table, marker in ordered]
    whole = {table for table, _ in doubt.others}
    for table in dict.fromkeys(table for table, _ in (*doubt.behind, *doubt.others)):
        seen = store.of(rulebook.name).histories.target_version(table)
        after = -1 if seen is None or table in whole else seen
        notes = markers.noted(table, after)
        if after >= 0 and not notes.commits:  # the table was created anew meanwhile
            after, notes = -1, markers.noted(table, -1)
        if notes.first > after + 1:
            cut.append({"table": table, "log_begins_at_version": notes.first})
        unknown = _unknown(store, doubt.last_entry, [noted.marker for noted in notes.commits])
        commits += [
            {
                "table": table,
                "version": noted.version,
                "what": "seal" if noted.sealed else "effect",
                **_shown(noted.marker),
                "firings": noted.firings,
            }
            for noted in notes.commits
            if noted.marker in unknown and noted.marker.store in doubt.stores
        ]
    return {"markers": rows, "commits": commits, "logs_cleaned": cut}


def _shown(marker: Marker) -> dict[str, Any]:
    return {
        "store": marker.store,
        "rulebook": marker.rulebook,
        "rule": marker.rule.partition("/")[0],
        "entry": marker.number,
        "committed_at": json_text.instant(marker.committed_at),
    }


def _behind(rulebook: Rulebook, doubt: Doubt) -> EngineError:
    table, marker = max(doubt.behind, key=lambda at: at[1].number)
    highest = f"the highest number in this store is {doubt.last_entry}"
    if marker.number <= doubt.last_entry:
        highest = f"in this store that number is another entry's (its highest: {doubt.last_entry})"
    return EngineError(
        "store-behind-effects",
        f"table `{table}`: its marker {marker.app_id} is at entry {marker.number}, but {highest}: "
        f"the store is older than its effects, such as one restored from a backup"
        f"{_more(len(doubt.behind) - 1)}",
        "nothing was run. " + _ways(rulebook, "what the store has forgotten"),
    )


def _other_store(rulebook: Rulebook, doubt: Doubt, now: int) -> EngineError:
    table, marker = max(doubt.others, key=lambda at: at[1].committed_at or now)
    when = "at an unknown time"
    if marker.committed_at is not None:
        when = f"{age_text((now - marker.committed_at) / 1e6)} ago"
    return EngineError(
        "other-store",
        f"table `{table}`: its marker {marker.app_id} was written by store {marker.store} "
        f"{when}, which this store does not know: the rulebook has run on that store, and two "
        f"stores would do everything twice"
        f"{_more(len(doubt.others) - 1)}",
        "nothing was run. Give --store the other one's URL, or stop the engine on it and go on "
        "with this one: " + _ways(rulebook, "what this store has not done"),
    )


def _ways(rulebook: Rulebook, what: str) -> str:
    file = rulebook.file or "RULEBOOK"
    return (
        f"`tidegate adopt --repeat {file}` lists what is in doubt and lets {what} be done (again), "
        f"`tidegate adopt --from now {file}` lists it and passes over it (with the same --store)"
    )


def _more(count: int) -> str:
    return f" ({count} more like it)" if count else ""


def _check_retention(rulebook: Rulebook, found: Iterable[Marked]) -> None:
    """Raises EngineError where Delta drops markers while their entries may still be tried: without
    its marker a statement could run twice."""
    days = rulebook.settings.outbox_age_max_days
    short = [m for m in found if m.retention_days is not None and m.retention_days < days]
    if not short:
        return
    tables = "; ".join(f"table `{m.table}` has '{m.retention}'" for m in short)
    mend = "; ".join(
        f"ALTER TABLE delta.`{m.location}` SET TBLPROPERTIES "
        f"('delta.setTransactionRetentionDuration' = 'interval {days} days')"
        for m in short
    )
    raise EngineError(
        "marker-retention",
        f"delta.setTransactionRetentionDuration is shorter than outbox_age_max_days = {days}: "
        f"{tables}; an entry tried again after that time would be done twice",
        f"run {mend}; or lower outbox_age_max_days",
    )
