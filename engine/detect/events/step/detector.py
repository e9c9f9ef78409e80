"""The detector: one step over one bucket of occurrences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey, tick_type
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import FOREVER, Batch, Carried, Detections, Int64, Stepped
from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.graph.timers import FloodError, Timed, Timers
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    NONE,
    Carry,
    Flow,
    Instances,
    Moment,
    no_pending,
)
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.events.occurrences.occurrences import Occurrences, Ranking
from tidegate.engine.detect.events.occurrences.timeline import Timeline, of_batches
from tidegate.engine.detect.events.state.decoded import Decoded, decoded
from tidegate.engine.detect.events.state.held_back import names_for
from tidegate.engine.detect.events.step import chains
from tidegate.engine.detect.events.step.carry import carry_on
from tidegate.engine.detect.events.step.chains import Steps
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.engine.detect.events.step.constituents import Shown, every_role, occur, show
from tidegate.engine.detect.events.step.frame import Frame, Until, open_frame
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Pattern, Rule, Rulebook

ABSENT = -(2**63)
"""The start and end of a label in a detection that has no occurrence under it."""


class Detector:
    """All enabled rules of a rulebook as one event graph.

    `activations`: rule -> the instant, microseconds, from which on it sees occurrences. `ranking`
    orders simultaneous occurrences of one type by their parameters (S1). `used`: detections also
    list the occurrences of roles that are no parameters (`Detections.used`). `lateness`: rule ->
    how far it runs behind, microseconds, a multiple of 1,000 (see `state.held_back`). `only`: these
    rules alone, and all that they use is among them (`graph.components`).
    Raises `EngineError('not-detectable')` for an operator or context that is not built.
    """

    def __init__(
        self,
        rulebook: Rulebook,
        activations: Mapping[str, int],
        ranking: Ranking = order,
        *,
        used: bool = False,
        lateness: Mapping[str, int] | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        lateness = lateness or {}
        running, self._graph = compile_book(rulebook, activations, lateness, only)
        self._samples = {
            tick_type(node): rulebook.samples.get(node.sample, node.sample)
            for rule in running.rules.values()
            for node in rule.pattern.on.walk()
            if isinstance(node, x.Periodic | x.PeriodicStar) and node.sample is not None
        }
        self._ranking = ranking
        self._used = used
        self._rules = running.rules
        self._chains = chains.chains(self._graph)
        self._scanned = chains.only_scanned(self._graph, self._chains)
        self.events = frozenset[str]().union(*self._graph.events.values())
        """The event types that some rule looks at."""
        self.timed = any(root.timed for root in self._graph.roots.values())
        """Whether something may be detected when nothing arrives."""
        roots = self._graph.roots
        self._rule_behind = {name: _behind(name, lateness) for name in roots}
        self._behind = {
            node.digest: micros
            for name, micros in self._rule_behind.items()
            if micros is not None
            for node in roots[name].walk()
        }
        self._timed = frozenset(
            digest for digest, node in self._graph.nodes.items() if isinstance(node.shape, Timed)
        )
        self._shown = [name for name in self._rules if name in rulebook.rules]

    @property
    def rules(self) -> tuple[str, ...]:
        """The enabled rules, in the rulebook's order."""
        return tuple(self._shown)

    @property
    def samples(self) -> Mapping[str, str]:
        """By event type of ticks, the query that each of them samples."""
        return self._samples

    @property
    def graph(self) -> Graph:
        """What runs; nodes are named by their digests."""
        return self._graph

    def parked_with(self, parked: Collection[str]) -> frozenset[str]:
        """The rules that stop when these are parked: these, and all rules that use them."""
        return frozenset(EventKey.of(rule).event for rule in self._stopped(parked))

    def _stopped(self, parked: Collection[str]) -> frozenset[str]:
        """`parked_with` by the names under which rules run: a rule that others use at another
        lateness runs once more under a name for that."""
        stopped = set[str]()
        for rule in self._graph.roots:  # each after those that it uses
            if EventKey.of(rule).event in parked or self._graph.uses[rule] & stopped:
                stopped.add(rule)
        return frozenset(stopped)

    def asleep(self, parked: Collection[str]) -> frozenset[str]:
        """The nodes that are not stepped when these rules are parked, by digest."""
        stopped, roots = self._stopped(parked), self._graph.roots
        if not stopped:
            return frozenset()
        found = {node.digest for rule in stopped for node in roots[rule].walk()}
        going = roots.keys() - stopped
        return frozenset(found).difference(n.digest for rule in going for n in roots[rule].walk())

    def behind_micros(self, node: str) -> int:
        """How far a node, given by its digest, runs behind the watermark."""
        return self._behind.get(node, 0)

    def passed_over(self, parked: Collection[str], batches: Mapping[str, Batch]) -> dict[str, int]:
        """How many arrivals of a step each parked rule does not see."""
        events = self._graph.events
        return {
            rule: sum(len(batch) for event, batch in batches.items() if event in events[rule])
            for rule in self.parked_with(parked)
        }

    def step(
        self,
        carried: Carried,
        arrivals: Mapping[str, Batch] | Timeline,
        watermark: int,
        last: int | None = None,
        parked: Collection[str] = (),
        limit: int | None = None,
        partitions: int = 1,
        *,
        of_some: bool = False,
        old: Collection[str] = (),
    ) -> Stepped:
        """One step over one bucket. Returns the detections of each rule that has any, in the
        rulebook's order; what to carry on; and the watermark that the step has reached. After a
        history that has ended nothing is carried.

        `arrivals` are all occurrences after the last step's watermark and up to this one's: by
        event type, or as a timeline. The step is pure: it has no clock and no I/O, and changes
        nothing that it is given. The cuts between buckets make no difference to the detections.

        Timers that are due up to the watermark fire. A `P` window that nothing closes ticks up to
        `last` (None: the watermark). If more than `limit` timers are due, the step ends earlier: at
        the end of the millisecond of the last timer within the limit. Arrivals after that are to be
        given again.

        What is carried on is cut into so many `partitions`. `of_some`: what was carried is the
        parts of some partitions only, and that of every key. Then what arrives is of these, and
        what is of every key stays: other keys may need it. `old`: see `Graph.active`.

        The event types of rules that run behind have names such as `a by 3`. Their arrivals are
        only those up to the rule's own watermark (`held_back.released`).

        Rules in `parked`, and those that use them as events, detect nothing and keep what they
        carry. A node that they share with others goes on. Raises `RuleLimitError`.
        """
        if not isinstance(arrivals, Timeline):
            batches = {e: b for e, b in arrivals.items() if len(b) and e in self.events}
            arrivals = of_batches(batches)
        last = watermark if last is None else last
        known = decoded(self._graph, carried)
        while True:
            timers = Timers(limit)
            try:
                until = Until(watermark, min(last, watermark), timers)
                frame, found, carry = self._stepped(known, arrivals, until, parked, old)
                reached = timers.reached(watermark)
            except FloodError as flood:
                reached = flood.reached
            if reached >= watermark:
                left = Carried({}, frozenset(carried.tables))
                if watermark != FOREVER:
                    given = carried, partitions, self._timed, self._behind
                    left = carry_on(frame, carry, *given, of_some=of_some)
                return Stepped(found, left, watermark)
            watermark, arrivals = reached, arrivals.until(reached)

    def cut_anew(self, carried: Carried, partitions: int) -> Carried:
        """What was carried, all of it, in so many partitions."""
        known = decoded(self._graph, carried)
        frame = open_frame(self._graph, {}, known, of_batches({}), self._ranking)
        return carry_on(frame, {}, carried, partitions, self._timed, self._behind)

    def _stepped(
        self,
        known: Decoded,
        arrivals: Timeline,
        until: Until,
        parked: Collection[str],
        old: Collection[str],
    ) -> tuple[Frame, tuple[Detections, ...], dict[str, Carry]]:
        """A step that goes so far: what it knows, detects, and carries on by node."""
        stopped = self._stopped(parked)
        active = self._graph.active(arrivals.counts, old)
        rules = [rule for rule in active if rule not in stopped]
        nodes = {n.digest: n for rule in rules for n in self._graph.roots[rule].walk()}
        frame = open_frame(self._graph, nodes, known, arrivals, self._ranking)
        shown, done = self._run(frame, rules, until)
        found = []
        for name in self._shown:
            if name in shown:
                rule = self._rules[name]
                keys, occurrences = frame.keys(self._graph.roots[name]), frame.occurrences
                behind = self._rule_behind[name]
                found.append(build(rule, shown[name], keys, occurrences, behind))
                if self._used:
                    every = every_role(shown[name], occurrences)
                    whole = build(rule, every, keys, occurrences, behind)
                    found[-1] = replace(found[-1], used=whole)
        return frame, tuple(found), {digest: kept for digest, (_, kept) in done.items()}

    def _run(
        self, frame: Frame, rules: Sequence[str], until: Until
    ) -> tuple[dict[str, Shown], Steps]:
        """Step all nodes of `rules`, a rule after those that it uses. Returns what each rule
        detects, if anything, and the step of each node."""
        graph = self._graph
        done: Steps = {}
        shown: dict[str, Shown] = {}
        used = frozenset[str]().union(*(graph.uses[name] for name in rules))
        for name in rules:
            rule, root = self._rules[name], graph.roots[name]
            for node in root.walk():
                if node.digest in done or node.digest in self._scanned:
                    continue
                try:
                    done |= self._steps(node, done, frame, until)
                except LimitError as error:
                    key = _named(rule.pattern, frame.keys(node), error.key)
                    raise error.of(EventKey.of(name).event, key) from None
            found, _ = done[root.digest]
            if len(found.instances):
                shown[name] = show(
                    rule.pattern, found.instances, frame.keys(root), frame.occurrences
                )
            if name in used:
                own = NONE
                if name in shown:
                    own = occur(rule, shown[name], frame.keys(root), frame.occurrences)
                frame.add_detected(name, Flow(own, found.pending))
        return shown, done

    def _steps(self, node: Node, done: Steps, frame: Frame, until: Until) -> Steps:
        """A node's step, or that of the chain that it is part of."""
        behind = self.behind_micros(node.digest)
        moment = frame.moment(node, until.behind(behind))
        chain = self._chains.get(node.digest)
        if chain:
            return chains.step(chain.upto(frame.nodes), frame, moment)
        try:
            return {node.digest: _step(node, done, frame, moment)}
        except FloodError as flood:
            raise FloodError(flood.reached + behind) from None


def _behind(name: str, lateness: Mapping[str, int]) -> int | None:
    """How far a rule runs behind, or the end of what it holds; None: not at all."""
    key = EventKey.of(name)
    return lateness.get(key.event) if key.behind is None else key.behind


def _named(pattern: Pattern, keys: Keys, code: int) -> str:
    """A key as text, `k=7, region=eu`; "" for the code of every key."""
    if code == EVERY_KEY:
        return ""
    found = keys.values(np.array([code], dtype=np.int32))
    values = [python_values(column)[0] for column in found]
    return ", ".join(
        f"{name}={value}" for name, value in zip(pattern.key_names, values, strict=False)
    )


def _step(node: Node, done: Steps, frame: Frame, moment: Moment) -> tuple[Flow, Carry]:
    """A node's instances, and what it carries on."""
    shape, carry = node.shape, frame.carry(node)
    if isinstance(shape, Scan):
        flow, kept = shape.scan(frame.arrivals_of(node.operands), carry, moment)
        return node.forgetting(flow, kept, moment.watermark)
    operands = [done[operand.digest][0] for operand in node.operands]
    if isinstance(shape, Event):
        operands = [Flow(frame.arrivals(node, shape), no_pending())]
    elif isinstance(shape, Detection):
        operands = [frame.detections(shape)]
    flow, kept = shape.step(operands, carry, moment)
    return node.forgetting(flow, kept, moment.watermark)


def build(
    rule: Rule, shown: Shown, keys: Keys, occurrences: Occurrences, behind: int | None = None
) -> Detections:
    """The detections of a rule that runs so far behind (None: not at all) in order of end, key,
    start, constituents; each occurrence once."""
    found = shown.found
    place, index, batches = occurrences.shown(shown.row)
    number = (
        np.cumsum([e not in occurrences.parts for e in occurrences.sources], dtype=np.int16) - 1
    )
    names = names_for(behind, batches)
    batches = {names[e]: batch for e, batch in batches.items() if e not in occurrences.parts}
    around = [role.labels for role in roles(rule.pattern.on)]
    labels = tuple(dict.fromkeys(label for inside in around for label in inside))
    innermost = np.array([labels.index(r[-1]) if r else -1 for r in around], dtype=np.int16)
    return Detections(
        rule.name,
        pa.table(keys.values(found.key), names=list(rule.pattern.key_names)),
        found.start,
        found.end,
        shown.offsets,
        tuple(batches),
        number[place],
        index,
        batches,
        labels,
        innermost[shown.role] if labels else None,
        {label: _span(label, around, found, occurrences) for label in labels},
    )


def _span(
    label: str, around: list[tuple[str, ...]], found: Instances, occurrences: Occurrences
) -> tuple[Int64, Int64]:
    """The interval of the occurrences under a label, in each detection."""
    labelled = np.array([label in inside for inside in around])[found.role]
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))[labelled]
    start = np.full(len(found), 2**63 - 1)
    end = np.full(len(found), ABSENT)
    np.minimum.at(start, owner, occurrences.start[found.row[labelled]])
    np.maximum.at(end, owner, occurrences.time[found.row[labelled]])
    start[end == ABSENT] = ABSENT
    return start, end
