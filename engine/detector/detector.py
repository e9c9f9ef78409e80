"""The detector: one step over one bucket of occurrences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

import numpy as np

from tidegate.engine.detector import chains, order
from tidegate.engine.detector.closing import carry_on
from tidegate.engine.detector.compile import compile_rule
from tidegate.engine.detector.contexts.limits import LimitError
from tidegate.engine.detector.detections import build
from tidegate.engine.detector.edges import with_edges
from tidegate.engine.detector.frame import Frame, Until, open_frame
from tidegate.engine.detector.graph import Census, Graph, Node, connect
from tidegate.engine.detector.instances import (
    EVERY_KEY,
    NONE,
    Carry,
    Flow,
    Moment,
    no_pending,
)
from tidegate.engine.detector.keys import Keys
from tidegate.engine.detector.occurrences import Ranking
from tidegate.engine.detector.operators.detection import Detection
from tidegate.engine.detector.operators.event import Event
from tidegate.engine.detector.shown import Shown, every_role, occur, show
from tidegate.engine.detector.timeline import Timeline, of_batches
from tidegate.engine.detector.timers import FloodError, Timers
from tidegate.engine.moments import python_values
from tidegate.engine.values import FOREVER, Batch, Carried, Detections, Stepped
from tidegate.rules import expression as x
from tidegate.rules.detected import as_detected
from tidegate.rules.model import Rule, Rulebook


class Detector:
    """All enabled rules of a rulebook as one event graph.

    `activations` gives each rule's activation, microseconds; a rule sees occurrences from its
    activation on. `ranking` orders simultaneous occurrences of one type by their parameters (S1).
    `used`: detections also tell what they use that is no parameter (`Detections.used`).
    Raises `EngineError('not-detectable')` for an operator or context that is not built.
    """

    def __init__(
        self,
        rulebook: Rulebook,
        activations: Mapping[str, int],
        ranking: Ranking = order,
        *,
        used: bool = False,
    ) -> None:
        rulebook = with_edges(as_detected(rulebook), {*rulebook.events, *rulebook.rules})
        self._ranking = ranking
        self._used = used
        self._rules = {rule.name: rule for rule in rulebook.rules.values() if rule.enabled}
        roots: dict[str, Node] = {}
        censuses: list[Census] = []
        for name in _used_first(self._rules):
            roots[name], census = compile_rule(
                self._rules[name], activations[name], rulebook, roots
            )
            censuses += [census] if census else []
        keys = {name: rule.key_names for name, rule in self._rules.items()}
        self._graph = connect(roots, keys, censuses)
        self._chains = chains.chains(self._graph)
        self._scanned = chains.only_scanned(self._graph, self._chains)
        self.events = frozenset[str]().union(*self._graph.events.values())
        """The event types that some rule looks at."""
        self.timed = any(root.timed for root in self._graph.roots.values())
        """Whether something may be detected when nothing arrives."""

    @property
    def graph(self) -> Graph:
        """What runs; nodes are named by their digests."""
        return self._graph

    def parked_with(self, parked: Collection[str]) -> frozenset[str]:
        """The rules that stop when these are parked: they themselves, and all that use them."""
        stopped = set(parked) & self._rules.keys()
        for rule in self._graph.roots:  # each after those that it uses
            if self._graph.uses[rule] & stopped:
                stopped.add(rule)
        return frozenset(stopped)

    def passed_over(self, parked: Collection[str], batches: Mapping[str, Batch]) -> dict[str, int]:
        """How many occurrences of a bucket each parked rule does not see."""
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
    ) -> Stepped:
        """What each rule detects in one bucket, in the rulebook's order of rules, those without a
        detection left out; what to carry on, nothing after a history that has ended; and how far
        the step went: where more than `limit` timers are due, up to the end of the millisecond of
        the last of so many. Arrivals after that are to be given again.

        `arrivals` are all occurrences after the last step's watermark and up to this one's: by
        event type, or as a timeline. Pure: no clock, no I/O, nothing given is changed. Where
        a history is cut into buckets makes no difference to what is detected. Timers that are due
        up to the watermark fire; a `P` window that nothing closes ticks up to `last` (None: the
        watermark).

        Rules in `parked`, and those that use them as events, detect nothing and keep what they
        carry; a node that they share with others goes on. Raises `RuleLimitError`.
        """
        if not isinstance(arrivals, Timeline):
            batches = {e: b for e, b in arrivals.items() if len(b) and e in self.events}
            arrivals = of_batches(batches)
        last = watermark if last is None else last
        while True:
            timers = Timers(limit)
            try:
                found = self._stepped(carried, arrivals, watermark, last, parked, timers)
                reached = timers.reached(watermark)
            except FloodError as flood:
                reached = flood.reached
            if reached >= watermark:
                return Stepped(*found, watermark)
            watermark, arrivals = reached, arrivals.until(reached)

    def _stepped(
        self,
        carried: Carried,
        arrivals: Timeline,
        watermark: int,
        last: int,
        parked: Collection[str],
        timers: Timers,
    ) -> tuple[tuple[Detections, ...], Carried]:
        """A step that `timers` looks at."""
        stopped = self.parked_with(parked)
        rules = [rule for rule in self._graph.active(arrivals.counts) if rule not in stopped]
        nodes = {n.digest: n for rule in rules for n in self._graph.roots[rule].walk()}
        frame = open_frame(self._graph, nodes, carried, arrivals, self._ranking)
        shown, carry = self._run(frame, rules, Until(watermark, min(last, watermark), timers))
        found = []
        for name, rule in self._rules.items():
            if name in shown:
                keys, occurrences = frame.keys(self._graph.roots[name]), frame.occurrences
                found.append(build(rule, shown[name], keys, occurrences))
                if self._used:
                    whole = build(rule, every_role(shown[name], occurrences), keys, occurrences)
                    found[-1] = replace(found[-1], used=whole)
        if watermark == FOREVER:
            return tuple(found), Carried({}, frozenset(carried.tables))
        return tuple(found), carry_on(frame, carry, carried)

    def _run(
        self, frame: Frame, rules: Sequence[str], until: Until
    ) -> tuple[dict[str, Shown], dict[str, Carry]]:
        """What each of `rules` detects, if anything, those that are used by others first; and what
        each node carries on."""
        graph = self._graph
        flows: dict[str, Flow] = {}
        carry: dict[str, Carry] = {}
        shown: dict[str, Shown] = {}
        used = frozenset[str]().union(*(graph.uses[name] for name in rules))
        for name in rules:
            rule, root = self._rules[name], graph.roots[name]
            for node in root.walk():
                if node.digest in flows or node.digest in self._scanned:
                    continue
                moment = frame.moment(node, until)
                chain = self._chains.get(node.digest)
                try:
                    if chain:
                        steps = chains.step(chain.upto(frame.nodes), frame, moment)
                    else:
                        steps = {node.digest: _step(node, flows, frame, moment)}
                except LimitError as error:
                    raise error.of(name, _named(rule, frame.keys(node), error.key)) from None
                for digest, (flow, kept) in steps.items():
                    flows[digest], carry[digest] = flow, kept
            found = flows[root.digest]
            if len(found.instances):
                shown[name] = show(rule, found.instances, frame.keys(root), frame.occurrences)
            if name in used:
                own = NONE
                if name in shown:
                    own = occur(rule, shown[name], frame.keys(root), frame.occurrences)
                frame.add_detected(name, Flow(own, found.pending))
        return shown, carry


def _named(rule: Rule, keys: Keys, code: int) -> str:
    """A key as text: its columns and values; nothing where the limit is not of one key."""
    if code == EVERY_KEY:
        return ""
    found = keys.values(np.array([code], dtype=np.int32))
    values = [python_values(column)[0] for column in found]
    return ", ".join(f"{name}={value}" for name, value in zip(rule.key_names, values, strict=False))


def _used_first(rules: Mapping[str, Rule]) -> Iterable[str]:
    """The rules' names, each after those of the rules that it uses as events."""
    used = {
        name: [n.name for n in rule.on.walk() if isinstance(n, x.Name) and n.name in rules]
        for name, rule in rules.items()
    }
    return TopologicalSorter(used).static_order()


def _step(
    node: Node, flows: Mapping[str, Flow], frame: Frame, moment: Moment
) -> tuple[Flow, Carry]:
    """A node's instances, and what it carries on."""
    operands = [flows[operand.digest] for operand in node.operands]
    if isinstance(node.shape, Event):
        operands = [Flow(frame.arrivals(node, node.shape), no_pending())]
    elif isinstance(node.shape, Detection):
        operands = [frame.detections(node.shape)]
    flow, kept = node.shape.step(operands, frame.carry(node), moment)
    return node.forgetting(flow, kept, moment.watermark)
