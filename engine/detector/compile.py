"""A rule's expression -> nodes of the event graph, chosen among in the rule's context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.engine.detector.contexts.at_once import AtOnce
from tidegate.engine.detector.contexts.build import chosen
from tidegate.engine.detector.contexts.reading import read
from tidegate.engine.detector.flat.flat_node import CONTEXTS, Flat, direct
from tidegate.engine.detector.flat.window_node import Windows, window
from tidegate.engine.detector.graph import Census, Node, digest
from tidegate.engine.detector.operator_nodes import Operators
from tidegate.engine.detector.operators.every import Every
from tidegate.engine.detector.operators.shape import Shape
from tidegate.rules import expression as x
from tidegate.rules.closers import Window, chosen_closers
from tidegate.rules.model import Context, Rule, Rulebook, Selection
from tidegate.rules.parser import unlabelled
from tidegate.rules.plain import plain
from tidegate.rules.recent import unused
from tidegate.rules.singles import single
from tidegate.rules.stages import stages


def compile_rule(
    rule: Rule, activation: int, book: Rulebook, roots: Mapping[str, Node]
) -> tuple[Node, Census | None]:
    """The node of a rule's whole expression, and the census that it needs, if any. `roots` are the
    nodes of the rules that it uses as events.

    Raises `EngineError('not-detectable')` for an operator that is not built.
    """
    context = rule.selection or rule.context
    builder = _Builder(rule.per, activation, book.timezone, context, book.settings, roots)
    root = builder.build(rule.on)
    if not builder.excepts_keys:
        return root, None
    streams = frozenset(rule.per.items())
    census = Census("keys:" + digest(sorted(streams), activation), streams, activation)
    builder = _Builder(rule.per, activation, book.timezone, context, book.settings, roots, census)
    return builder.build(rule.on), census


class _Builder(Operators):
    """Compiles the root of a rule in its context. `core`: the event types of which all rows count
    and not only the greatest of an instant."""

    core: x.Expression | None = None

    def build(self, expression: x.Expression) -> Node:
        context = self.context
        self.chosen_closers = chosen_closers(
            expression, context if isinstance(context, Context) else None, self.roots
        )
        core = single(expression) if isinstance(context, Context) else None
        if core and isinstance(context, Context):
            context = _SINGLE.get(context, context)
        if context is Context.RESTRICTED:
            return self._node(expression, None)
        if context is Context.UNRESTRICTED and plain(expression):
            return self._rows(expression, None)
        return (
            self._single(expression, core, context)
            or self._flat(expression, context)
            or self._windows(expression, context)
            or self._choice(expression, context)
        )

    def _node(self, e: x.Expression, horizon: int | None) -> Node:
        if e is self.core:
            return self._rows(e, None)
        return _named(super()._node(e, horizon), e)

    def _all_rows(self, e: x.Expression) -> bool:
        return self.core is not None and single(e) is self.core

    def _single(
        self, expression: x.Expression, core: x.Expression | None, context: Context | Selection
    ) -> Node | None:
        """Occurrences that pass one by one, of `core`, all of one key or all without; else None."""
        if core is None:
            return None
        rows = self._rows(core, None)
        if rows.own and rows.every:
            return None
        self.core = core
        found = self._node(expression, None)
        self.core = None
        if context is Context.UNRESTRICTED:
            return found
        return _named(self._like(AtOnce(), (found,), found, None), expression)

    def _closer(self, window: Window, horizon: int | None) -> Node:
        if window not in self.chosen_closers:
            return super()._closer(window, horizon)
        closer = window.closer
        if horizon is not None:  # an older c closes nothing younger
            closer = x.Within(closer, x.Duration(0, horizon))
        return self._choice(closer, Context.UNRESTRICTED)

    def _given(self, e: x.Expression) -> Node:
        """What is the same whatever is used up; all that `every` gives at an instant."""
        if isinstance(e, x.Every):
            return _named(self._counted(Every(e.count, all_rows=True), e.part, None), e)
        return self._node(e, None)

    def _flat(self, expression: x.Expression, context: Context | Selection) -> Node | None:
        """A flat expression over event types, all of one key or all without; else None."""
        flat = stages(expression)
        if flat is None or not isinstance(context, Context) or not direct(flat, context):
            return None
        shape = Flat(context, flat, self.settings.carried_per_key_max)
        return self._direct(shape, flat.events, expression, flat.span_micros)

    def _windows(self, expression: x.Expression, context: Context | Selection) -> Node | None:
        """`A*` over event types, all of one key or all without; else None."""
        found = window(expression)
        if found is None or context not in CONTEXTS or not isinstance(context, Context):
            return None
        shape = Windows(context, found, self.settings.carried_per_key_max)
        timed = found.length_micros > 0
        return self._direct(shape, found.events, expression, found.span_micros, timed=timed)

    def _direct(
        self,
        shape: Shape,
        events: tuple[str, ...],
        expression: x.Expression,
        span: int | None,
        *,
        timed: bool = False,
    ) -> Node | None:
        """A choice in one scan over all rows of event types alike, none of them a rule."""
        operands = tuple(self._event(name, all_rows=True) for name in events)
        if len({o.own for o in operands}) > 1 or not self.roots.keys().isdisjoint(events):
            return None
        own = operands[0].own
        found = self._make(
            shape, operands, own=own, every=not own, point=False, horizon=span, timed=timed
        )
        return _named(found, expression)

    def _choice(self, expression: x.Expression, context: Context | Selection) -> Node:
        """The root of a rule in a context that needs what is not used up (semantics 3)."""
        tree, streams = read(expression, self.zone)
        lasting = self._lasting(expression)
        shape = chosen(context, expression, tree, streams, lasting, self.settings)
        # a window may have opened long before what stands in it
        horizon = None if shape.windows else shape.horizon_micros
        root = self._node(expression, None)
        operands = (
            *(self._event(name, all_rows=True) for name in streams.events),
            *(self._given(e) for e in streams.given),
            *(self._node(e, horizon) for e in streams.looked),
        )
        operands = self._alike((root, *operands), horizon)[1:]
        if context is Context.RECENT:
            few = unused(expression, self.per, lasting) is not None
            shape = replace(shape, latest=few)
        found = self._make(
            shape,
            operands if shape.where.paths else (*operands, root),
            own=root.own,
            every=root.every,
            point=root.point,
            horizon=horizon,
            timed=root.timed or shape.where.from_start,
        )
        return _named(replace(found, roles=root.roles), expression)

    def _lasting(self, e: x.Expression) -> frozenset[str]:
        """The rules in an expression whose detections, as occurrences, are no instants."""
        return frozenset(n for n in x.names_in(e) if n in self.roots and not self.roots[n].point)


def _named(node: Node, e: x.Expression) -> Node:
    return replace(node, expression=unlabelled(e))


_SINGLE = {
    Context.RECENT: Context.RESTRICTED,
    Context.CHRONICLE: Context.UNRESTRICTED,
    Context.CONTINUOUS: Context.UNRESTRICTED,
}
"""What detects the same where every instance is a single occurrence."""
