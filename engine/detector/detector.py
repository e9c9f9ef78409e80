"""The detector: one step over one bucket of occurrences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.detector import order
from engine.detector.closing import carry_on
from engine.detector.compile import compile_rule
from engine.detector.detections import build
from engine.detector.frame import Frame, open_frame
from engine.detector.graph import connect
from engine.detector.instances import Carry, Flow, no_pending
from engine.detector.occurrences import Ranking
from engine.detector.operators.event import Event
from engine.values import Batch, Carried, Detections
from rules.detected import as_detected
from rules.model import Rulebook

FOREVER = 2**62
"""The watermark of a history that has ended: everything runs out."""


class Detector:
    """All enabled rules of a rulebook as one event graph.

    `activations` gives each rule's activation, microseconds; a rule sees occurrences from its
    activation on. `ranking` orders simultaneous occurrences of one type by their parameters (S1).
    Raises `EngineError('not-detectable')` for an operator or context that is not built.
    """

    def __init__(
        self,
        rulebook: Rulebook,
        activations: Mapping[str, int],
        ranking: Ranking = order,
    ) -> None:
        rulebook = as_detected(rulebook)
        self._ranking = ranking
        self._rules = {rule.name: rule for rule in rulebook.rules.values() if rule.enabled}
        compiled = {
            name: compile_rule(rule, activations[name], rulebook)
            for name, rule in self._rules.items()
        }
        self._graph = connect(
            {name: root for name, (root, _) in compiled.items()},
            [census for _, census in compiled.values() if census],
        )
        self.events = self._graph.events()
        """The event types that some rule looks at."""
        self.timed = any(root.timed for root in self._graph.roots.values())
        """Whether something may be detected when nothing arrives."""

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        last: int | None = None,
    ) -> tuple[tuple[Detections, ...], Carried]:
        """What each rule detects in one bucket, in the rulebook's order of rules, those without a
        detection left out; and what to carry on.

        `batches` holds every occurrence after the last step's watermark and up to this one's, by
        event type. Pure: no clock, no I/O, nothing given is changed. Where a history is cut into
        buckets makes no difference to what is detected. Timers that are due up to the watermark
        fire; a `P` window that nothing closes ticks up to `last` (None: the watermark).
        """
        arrivals = {e: b for e, b in batches.items() if len(b) and e in self.events}
        roots = {
            name: root
            for name, root in self._graph.roots.items()
            if root.timed or not arrivals.keys().isdisjoint(root.roles)
        }
        nodes = {node.digest: node for root in roots.values() for node in root.walk()}
        frame = open_frame(self._graph, nodes, carried, arrivals, self._ranking)
        flows, carry = _run(frame, watermark, watermark if last is None else last)
        found = [
            build(self._rules[name], flows[root.digest].instances, frame.keys(root), frame)
            for name, root in roots.items()
            if len(flows[root.digest].instances)
        ]
        return tuple(found), carry_on(frame, carry, carried)


def _run(frame: Frame, watermark: int, last: int) -> tuple[dict[str, Flow], dict[str, Carry]]:
    """Each node's instances, operands first, and what it carries on."""
    flows: dict[str, Flow] = {}
    carry: dict[str, Carry] = {}
    for digest, node in frame.nodes.items():
        operands = [flows[operand.digest] for operand in node.operands]
        if isinstance(node.shape, Event):
            operands = [Flow(frame.arrivals(node, node.shape), no_pending())]
        flow, kept = node.shape.step(
            operands, frame.carry[digest], frame.moment(node, watermark, last)
        )
        if node.horizon_micros is not None:
            oldest = watermark + 1 - node.horizon_micros
            kept = tuple(part.where(part.start >= oldest) for part in kept)
            flow = replace(flow, pending=flow.pending.since(oldest))
        flows[digest], carry[digest] = flow, kept
    return flows, carry
