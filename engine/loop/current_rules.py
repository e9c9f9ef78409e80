"""The rules as they are now, for entries that were stored before (G18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import done
from tidegate.engine.act.outbox import Stamp, alternative, entries_for
from tidegate.engine.core.entries import Entry, Outcome, Progress
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.outage import looking_at_tables
from tidegate.engine.core.ports import QuarantinedError, SinkError
from tidegate.engine.core.values import Answers, Firings
from tidegate.engine.evaluate.damping.damper import Damper
from tidegate.engine.evaluate.stage import decided, questions_of
from tidegate.engine.loop.compiled_rulebook import CompiledRulebook
from tidegate.engine.loop.ports import Ports


@dataclass(frozen=True, slots=True)
class CurrentRules:
    """Implements `engine.act.executors.CurrentRules` by a compiled rulebook; tables are seen at
    their latest versions."""

    compiled: CompiledRulebook
    ports: Ports
    damper: Damper

    def asked(self, entry: Entry, firings: Firings) -> Outcome:
        rule = self.compiled.rulebook.rules.get(entry.rule)
        if rule is None:
            raise SinkError(f"rule {entry.rule} is not in the rulebook any more")
        answers = Answers()
        if questions := questions_of(self.compiled.prepared.rules[rule.name], firings.relation):
            latest = {name: self._latest(name) for q in questions for name in q.tables}
            asked = [replace(q, versions=latest, entry=entry.number) for q in questions]
            answers = self.ports.asked_later.hold(asked)
            for why in answers.failed.values():
                failed = QuarantinedError if why.quarantined else SinkError
                raise failed(why.error, why.details)
        firings = decided(firings, rule, answers)
        failpoint("condition.asked")
        successors = self._successors(entry, firings)
        return replace(done(entry), successors=successors, firings=firings, answers=answers)

    def damped(self, outcome: Outcome) -> Outcome:
        rule = self.compiled.rulebook.rules.get(outcome.entry.rule)
        if rule is None or outcome.firings is None or outcome.answers is None:
            return outcome
        firings, memory = self.damper.damp_rule(outcome.firings, rule, outcome.answers)
        if memory is None:
            return outcome
        through = firings.acted_on
        ids, deep = through.hex_ids().to_pylist(), through.firings["depth"].to_pylist()
        depths = dict(zip(ids, deep, strict=True))
        successors = (_of_some(one, depths) for one in outcome.successors)
        left = tuple(one for one in successors if one is not None)
        return replace(outcome, firings=firings, memory=memory, successors=left)

    def _successors(self, entry: Entry, firings: Firings) -> tuple[Entry, ...]:
        """The entries of a rule's actions that take the place of its condition's."""
        rule = self.compiled.rulebook.rules[entry.rule]
        made = entries_for(
            [firings],
            {},
            self.compiled.rulebook.rules,
            self.compiled.prepared.statements,
            self.compiled.rulebook.settings.max_cascade_depth,
            self._stamp(*(s.target for s in self.compiled.prepared.statements[rule.name])),
            self.compiled.later,
            decided=True,
        )
        ids = tuple(firings.acted_on.hex_ids().to_pylist())
        stamp, place = self._stamp(), entry.turn.place
        return tuple(
            replace(
                stamp.on(one.placed(place), asked=place == entry.number),
                target_version=one.target_version,
                firing_ids=one.firing_ids or ids,
            )
            for one in made
        )

    def otherwise(self, entry: Entry) -> tuple[Entry, ...]:
        statements = self.compiled.prepared.otherwise.get(entry.rule, ())
        depth_max = self.compiled.rulebook.settings.max_cascade_depth
        return alternative(
            entry, statements, depth_max, self._stamp(*(s.target for s in statements))
        )

    def watched(self, rule: str) -> frozenset[str]:
        return self.compiled.watched.get(rule, frozenset())

    def renewed(self, entry: Entry) -> Entry | str:
        rule = self.compiled.rulebook.rules.get(entry.rule)
        if rule is None:
            return f"rule {entry.rule} is not in the rulebook any more: skip entry {entry.number}"
        fresh = replace(entry, number=0, progress=Progress())
        if entry.kind == "condition":
            return self._stamp().on(fresh)
        prepared = self.compiled.prepared
        statements = prepared.otherwise if entry.alternative else prepared.statements
        now = next((s for s in statements[rule.name] if s.action == entry.statement.action), None)
        if now is None:
            return (
                f"rule {entry.rule} has no action number {entry.statement.action + 1} any more: "
                f"skip entry {entry.number}"
            )
        fresh = replace(fresh, statement=now)
        return self._stamp(fresh.target).on(fresh)

    def _stamp(self, *targets: str | None) -> Stamp:
        latest = {name: self._latest(name) for name in targets if name is not None}
        return Stamp(self.ports.store_id, self.compiled.rulebook.name, latest, self.ports.now())

    def _latest(self, table: str) -> int:
        with looking_at_tables():
            return self.ports.feed.version(self.compiled.rulebook.tables[table])


def _of_some(entry: Entry, depths: Mapping[str, int]) -> Entry | None:
    """An entry for only those of its firings that are in `depths`; None if none is left."""
    ids = tuple(one for one in entry.firing_ids or () if one in depths)
    if not ids:
        return None
    return replace(entry, firing_ids=ids, depth=max(depths[one] for one in ids))
