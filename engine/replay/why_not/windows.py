"""What the rung `parts` says of a window: what is open, and what is in the way of its end.

Example: `{window: 5 min, of: req}` with a req at 9:01:00, asked for at 9:03:00. Its window is open,
with 1 row, and ends at 9:05:00.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.why_not.crossing import Crossed
from tidegate.engine.replay.why_not.evidence import Answer, Asked
from tidegate.engine.replay.why_not.holding import Held
from tidegate.engine.replay.why_not.keys import rows_of
from tidegate.engine.replay.why_not.probe import Instances, Probe
from tidegate.engine.replay.why_not.words import expression_text
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.model import Rule


class WindowWords:
    """Says for one key why a window did not fire, or what it has fired for is not over."""

    def __init__(self, asked: Asked, probe: Probe) -> None:
        self._asked, self._probe, self._words = asked, probe, asked.words

    def answer(self, on: w.Window, due: Instances) -> Answer:
        """Why the window did not fire in the time that is asked for. `due`: what it would detect
        after that if nothing more came."""
        match on:
            case w.Holding():
                return Held(on, self._asked, self._probe.instants).not_fired()
            case w.Crossing():
                with suppress(OutsideError, EngineError):  # columns that cannot be asked
                    first = int(due.end[0]) if len(due) else None
                    if (found := Crossed(on, self._asked, self._probe).answer(first)) is not None:
                        return found
        if len(due):
            return self._open(on, due)
        return self._in_none(on) or self._none_ended(on)

    def unresolved(self, node: x.Resolved) -> Answer | None:
        """Why what a rule holds was not over by then; None: it was, or that cannot be told."""
        rule = self._asked.book.rules[node.name]
        instants = self._instants_of(rule)
        if instants is None or not isinstance(rule.pattern.on, w.Holding):
            return None
        held = Held(rule.pattern.on, self._asked, instants)
        if held.standing.fired is not None:
            return held.not_over(held.standing.fired, rule.name)
        if held.standing.over is not None:
            return None
        why, figures = held.not_fired()
        return Answer(f"Rule {rule.name} had not fired{self._words.of_key}. {why}", figures)

    def _instants_of(self, rule: Rule) -> Callable[[str], Int64] | None:
        """The instants of what a used rule is made of, for the key; None where rules are among
        that, or its key is another one."""
        of_rule, names = self._asked.per(rule.name) or (), rule.pattern.key_names
        made_of = x.names_in(rule.pattern.on)
        if made_of & self._asked.book.rules.keys() or {*of_rule} != {*names}:
            return None
        key = dict(zip(of_rule, self._asked.key.values(), strict=True))

        def instants(event: str) -> Int64:
            batch = self._probe.batches.get(event)
            if batch is None:
                return self._probe.instants(event)
            columns = rule.pattern.per.get(event)
            mine = {name: key[name] for name in names}
            return (rows_of(batch, columns, mine) if columns else batch).time

        return instants

    def _open(self, on: w.Window, due: Instances) -> Answer:
        words, rows = self._words, due.parts(0)
        start, end = int(due.start[0]), int(due.end[0])
        last = max((row.instant for row in rows), default=start)
        what = "session" if isinstance(on, w.Session) else "window"
        held = f"{counted(len(rows), 'row')} {words.between(start, last)}"
        sentence = f"Its {what}{words.of_key} is open, with {held}: it ends at {words.at(end)}"
        if isinstance(on, w.Session):
            sentence += f", if none comes within {format_duration(on.gap)} of the last"
        figures = {"start": start, "last": last, "due": end, "rows": len(rows)}
        return Answer(f"{sentence}.", figures)

    def _in_none(self, on: w.Window) -> Answer | None:
        """The last row is in no window, for one ends more seldom than it is long."""
        if not isinstance(on, w.Sliding):
            return None
        names = x.names_in(on.part)
        seen = [t for t in (self._last(name) for name in names) if t is not None]
        found = self._probe.one(on)
        row = max(seen, default=0)
        if not seen or ((found.start <= row) & (row < found.end)).any():
            return None
        words = self._words
        sentence = (
            f"The row{words.of_key} at {words.at(row)} is in no window: one of"
            f" {format_duration(on.length)} ends every {format_duration(on.every)}."
        )
        return Answer(sentence, {"last": row})

    def _last(self, name: str) -> int | None:
        instants = self._probe.instants(name)
        instants = instants[instants <= self._asked.until]
        return int(instants[-1]) if len(instants) else None

    def _none_ended(self, on: w.Window) -> Answer:
        asked, words = self._asked, self._words
        last = self._probe.one(on).span(asked.begin, asked.until).last()
        when = words.between(asked.since, asked.until)
        sentence = f"No {expression_text(on)} ended{words.of_key} with a row in it {when}"
        if last is not None:
            sentence += f"; the last did at {words.at(last[1])}"
        return Answer(f"{sentence}.", {"last": last and [*last]})
