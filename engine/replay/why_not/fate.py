"""The rungs after detection: `if`, `damping`, `disabled_for`, `held` and `fired`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.evaluator.firings import FiringExpression, FiringReader
from tidegate.engine.core.evaluator.forms import read_tree
from tidegate.engine.core.evaluator.nodes import OutsideError, UndecidedError, column
from tidegate.engine.core.text.json_text import key_text
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import DAMPED, Batch, Firings
from tidegate.engine.replay.why_not.evidence import Asked, Rung
from tidegate.engine.replay.why_not.keys import rows_of
from tidegate.engine.replay.why_not.words import key_phrase, lasting, quoted
from tidegate.rules.sql.tree import columns, tree_of

_SHOWN_MAX = 5
_QUERY_MAX = 200
_ONE_VALUE = ("firing_id", "started_at", "detected_at")  # of all rows of a firing
FAILED, DROPPED, STUCK, FIRED = range(4)
"""How far a firing came: its condition failed; damping dropped it; it is held or dead; it fired."""
_STUCK = ("held", "dead", "skipped")


@dataclass(frozen=True, slots=True)
class Firing:
    """A firing of the key, with the bucket's firings that it is among."""

    id: str
    start: int
    end: int
    condition: str
    damped: str | None
    among: Firings

    @property
    def relation(self) -> pa.Table:
        """Its rows of the parameter relation."""
        rows = self.among.rows
        return rows.filter(pc.equal(rows["firing_id"], self.id))

    @property
    def events(self) -> list[str]:
        """The event types of its constituents."""
        rows = self.relation
        known = rows["event_type"].to_pylist() if "event_type" in rows.column_names else []
        return [event for event in known if event is not None]


def firings_of(asked: Asked, since: int | None) -> list[Firing]:
    """The firings of the rule for the key that were detected in [`since`, until]."""
    found: list[Firing] = []
    names = tuple(asked.key)
    for some in asked.evidence.firings.get(asked.rule.name, ()):
        table = some.firings
        end = table["detected_at"].cast(pa.int64()).to_numpy()
        mine = (end <= asked.until) & (end >= (-(2**62) if since is None else since))
        batch = Batch("", end[mine], np.flatnonzero(mine), table)
        row = rows_of(batch, names, asked.key).row
        chosen = table.take(pa.array(row))
        damped = chosen[DAMPED].to_pylist() if DAMPED in table.column_names else [None] * len(row)
        found += (
            Firing(id.hex(), start, end, condition, by, some)
            for id, start, end, condition, by in zip(
                chosen["firing_id"].to_pylist(),
                chosen["started_at"].cast(pa.int64()).to_pylist(),
                chosen["detected_at"].cast(pa.int64()).to_pylist(),
                chosen["condition"].to_pylist(),
                damped,
                strict=True,
            )
        )
    return sorted(found, key=lambda one: one.end)


class Fate:
    """What became of the firings that are asked for. Of several, the one that came furthest is
    told, the last of these. Without any, the rule was `detected` from what the sources hold, at an
    instant: for a key for which it is disabled, or the firing is not kept."""

    def __init__(
        self, asked: Asked, firings: Sequence[Firing], detected: int | None = None
    ) -> None:
        self._asked, self._words, self._detected = asked, asked.words, detected
        ranked = [(self._reached(one), one.end, n) for n, one in enumerate(firings)]
        self.firing = firings[max(ranked)[2]] if ranked else None
        self._reach = max(ranked)[0] if ranked else FIRED

    def _reached(self, firing: Firing) -> int:
        if firing.condition == "failed":
            return FAILED
        if firing.damped is not None:
            return DROPPED
        stuck = firing.condition == "dead" or self._stuck(firing) or self._unasked(firing)
        return STUCK if stuck else FIRED

    # -- if -----------------------------------------------------------------------------------

    def condition(self) -> Rung:
        """Whether the condition held."""
        condition, firing = self._asked.rule.condition, self.firing
        if condition is None:
            return Rung("if", True, "It has no condition.", {})
        if firing is None or self._reach != FAILED:
            what = "Its query" if condition.query else f"`if: {condition.text}`"
            said = f"{what} held." if firing else "It was not asked."
            return Rung("if", True, said, {"text": condition.text})
        text = f"`if: {condition.text}`"
        if condition.query:
            text = f"its query `{shortened(' '.join(condition.text.split()), _QUERY_MAX)}`"
        values = (
            {}
            if condition.query
            else condition_values(condition.text, firing.relation, firing.among.key_names)
        )
        shown = ", ".join(f"`{name}` is {quoted(each)}" for name, each in values.items())
        sentence = (
            f"It was detected{self._words.of_key} at {self._words.at(firing.end)}, but {text}"
            f" did not hold{f': {shown}' if shown else ''}."
        )
        figures = {"firing_id": firing.id, "text": condition.text, "values": values}
        return Rung("if", False, sentence, figures)

    # -- damping ------------------------------------------------------------------------------

    def damping(self) -> Rung:
        """Whether damping let it through."""
        firing = self.firing
        if self._asked.rule.damping is None:
            return Rung("damping", True, "It is not damped.", {})
        if firing is None or self._reach != DROPPED:
            return Rung("damping", True, "No damping dropped it.", {})
        kind, words = str(firing.damped), self._words
        before = [
            one
            for one in firings_of(self._asked, None)
            if one.end <= firing.end
            and one.id != firing.id
            and one.damped is None
            and one.condition in ("held", "none")
        ]
        last, until, rule = self._damped_by(kind, firing, before)
        sentence = (
            f"It was detected{words.of_key} at {words.at(firing.end)}, but `{kind}` dropped it:"
            f" {rule}"
        )
        if last is not None:
            sentence += f"; it fired at {words.at(last.end)}"
        if until is not None:
            sentence += f", so `{kind}` drops until {words.at(until)}"
        figures: dict[str, Any] = {"firing_id": firing.id, "kind": kind, "until": until}
        if last is not None:
            figures["fired"] = {"firing_id": last.id, "instant": last.end}
        return Rung("damping", False, f"{sentence}.", figures)

    def _damped_by(
        self, kind: str, firing: Firing, before: Sequence[Firing]
    ) -> tuple[Firing | None, int | None, str]:
        """The firing for which this one was dropped, until when others are, and the rule."""
        damping = self._asked.rule.damping
        last = before[-1] if before else None
        if damping is None:
            return last, None, "the rulebook has no such damping now"
        if kind == "cooldown" and damping.cooldown_micros:
            until = _after(last, damping.cooldown_micros)
            return last, until, f"one firing in {lasting(damping.cooldown_micros)}"
        if kind == "throttle" and damping.throttle:
            length, count = damping.throttle.within_micros, damping.throttle.count
            oldest = before[-count] if len(before) >= count else last
            said = f"at most {count:,} in {lasting(length)}"
            return last, _after(oldest, length), said
        if kind == "dedupe" and damping.dedupe:
            by, length = damping.dedupe.by, damping.dedupe.within_micros
            mine = _fields(firing, by)
            same = next((one for one in reversed(before) if _fields(one, by) == mine), last)
            said = f"the same {', '.join(by)} as before, within {lasting(length)}"
            return same, _after(same, length), said
        levels = damping.hysteresis
        if levels is None:
            return last, None, "the rulebook has no such damping now"
        if last is None:
            return None, None, f"`fire: {levels.fire.text}` did not hold"
        said = f"`fire: {levels.fire.text}` did not hold, or not yet again"
        return last, None, f"{said} `rearm: {levels.rearm.text}` since"

    # -- disabled_for -------------------------------------------------------------------------

    def disabled_for(self) -> Rung:
        """Whether the rule is disabled for the key."""
        asked = self._asked
        keys = [*asked.rule.disabled_for]
        silent = any(
            all(key_text(key[name]) == key_text(each) for name, each in asked.key.items())
            for key in keys
        )
        if self.firing is not None or not silent:
            return Rung("disabled_for", True, "It is not disabled for this key.", {})
        sentence = (
            f"Rule {asked.rule.name} is disabled for {key_phrase(asked.key)} (`disabled_for`): what"
            " is detected for it is dropped."
        )
        return Rung("disabled_for", False, sentence, {"disabled_for": keys})

    # -- held, fired --------------------------------------------------------------------------

    def held(self) -> Rung:
        """Whether its actions are held or dead, or its condition could not be asked."""
        firing, words = self.firing, self._words
        if firing is None or self._reach != STUCK:
            return Rung("held", True, "Nothing of it is held or dead.", {})
        at = f"It was detected{words.of_key} at {words.at(firing.end)}"
        if firing.condition == "dead":
            why = self._asked.evidence.unasked.get(firing.id, "")
            sentence = f"{at}, but is dead: its condition could not be asked{why and f': {why}'}."
            return Rung("held", False, sentence, {"firing_id": firing.id, "error": why or None})
        if self._unasked(firing):
            sentence = f"{at}, but its condition was not asked yet: it waits for its turn."
            return Rung("held", False, sentence, {"firing_id": firing.id, "error": None})
        entry, behind = self._stuck(firing) or (None, None)
        if entry is None:
            return Rung("held", True, "Nothing of it is held or dead.", {})
        stuck = behind or entry
        error = stuck.progress.error
        why = f": {error}" if error else ""
        what = f"its entry {entry.number} is {entry.state}"
        if behind is not None:
            what = f"its entry {entry.number} waits behind entry {behind.number}, which is held"
        attempts = stuck.progress.attempts
        after = f" after {counted(attempts, 'attempt')}" if attempts else ""
        figures = {
            "firing_id": firing.id,
            "entry": entry.number,
            "state": entry.state,
            "behind": behind and behind.number,
            "attempts": attempts,
            "error": error,
        }
        sentence = f"{at}, but {what}{after}{why}."
        if stuck.state in ("held", "dead"):
            sentence += f" `tidegate redrive {stuck.number}` runs it again."
        return Rung("held", False, sentence, figures)

    def _stuck(self, firing: Firing) -> tuple[Entry, Entry | None] | None:
        """An entry of the firing that is held or dead; or one that waits behind such a one."""
        mine = [*self._entries(firing)]
        for entry in mine:
            if entry.state in _STUCK:
                return entry, None
        for entry in mine:
            if entry.state == "pending":
                for other in self._asked.evidence.entries:
                    ahead = other.turn.place < entry.turn.place
                    if other.queue == entry.queue and other.state == "held" and ahead:
                        return entry, other
        return None

    def _unasked(self, firing: Firing) -> bool:
        """Whether its condition, which is asked by itself, was not asked yet."""
        pending = (e for e in self._entries(firing) if e.kind == "condition")
        return any(entry.state == "pending" for entry in pending)

    def _entries(self, firing: Firing) -> Iterator[Entry]:
        for entry in self._asked.evidence.entries:
            mine = entry.rule == self._asked.rule.name and not entry.alternative
            if mine and (entry.firing_ids is None or firing.id in entry.firing_ids):
                yield entry

    def fired(self) -> Rung:
        """It fired; or no firing of its detection is kept."""
        firing, words = self.firing, self._words
        if firing is None:
            return self._no_firing()
        sentence = f"It fired{words.of_key} at {words.at(firing.end)} (firing {firing.id[:8]})."
        if self._asked.rule.reaction.dry:
            sentence += " The rule is dry (mode: dry): none of its actions ran."
        return Rung("fired", True, sentence, {"firing_id": firing.id, "instant": firing.end})

    def _no_firing(self) -> Rung:
        """What the sources hold would have been detected, and the store has no firing."""
        words, at = self._words, self._detected
        when = "" if at is None else f" at {words.at(at)}"
        sentence = f"From what the sources hold now it would be detected{words.of_key}{when}, but"
        forgotten = self._asked.evidence.firings_from
        if at is not None and forgotten is not None and at < forgotten:
            sentence += (
                f" firings before {words.at(forgotten)} are forgotten (firings_retention_days), or"
                " not looked at: whether it fired cannot be told."
            )
        else:
            sentence += (
                " no such firing is stored: it did not fire. The sources do not hold what they"
                " held then, or what came before the time that is looked at makes the difference."
            )
        return Rung("fired", False, sentence, {"firing_id": None, "instant": at})


def _after(firing: Firing | None, micros: int) -> int | None:
    return None if firing is None else firing.end + micros


def _fields(firing: Firing, names: Sequence[str]) -> list[list[Any]]:
    rows = firing.relation
    return [python_values(rows[name]) for name in names if name in rows.column_names]


def condition_values(text: str, rows: pa.Table, key_names: Sequence[str]) -> dict[str, Any]:
    """The aggregates of a condition by their values, and the columns that stand outside them.
    `rows`: those of one firing.
    Where only Spark can tell: the columns that it names, with their values in each row."""
    kinds = {field.name: field.type for field in rows.schema}
    outside = {*rows.column_names} if len(rows) == 1 else {*key_names, *_ONE_VALUE}
    try:
        reader = FiringReader(kinds, outside & kinds.keys())
        reader.node(read_tree(text))
        found = {}
        for name, each in reader.aggregates.items():
            one = FiringExpression(column(name, each.kind), reader.aggregates)
            found[name.lower().replace("`", "")] = python_values(one.values(rows)[1])[0]
        if "count(*)" in text.lower().replace(" ", ""):
            found["count(*)"] = len(rows)
        named = _columns(text) - {n for one in reader.aggregates.values() for n in _within(one)}
        return found | {n: python_values(rows[n])[0] for n in sorted(named) if n in kinds}
    except (OutsideError, UndecidedError):
        named = _columns(text)
        return {n: python_values(rows[n])[:_SHOWN_MAX] for n in sorted(named) if n in kinds}


def _within(aggregate: Any) -> frozenset[str]:
    """The columns of an aggregate."""
    return frozenset(aggregate.part.columns)


def _columns(text: str) -> set[str]:
    tree = tree_of(text, expression=True)
    return set() if tree is None else {mention.name for mention in columns([*tree.walk()])}
