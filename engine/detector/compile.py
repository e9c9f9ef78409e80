"""A rule's expression -> nodes of the event graph, chosen among in the rule's context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.engine.detector.contexts.at_once import AtOnce
from tidegate.engine.detector.contexts.build import chosen
from tidegate.engine.detector.contexts.chain import Chain
from tidegate.engine.detector.contexts.reading import read
from tidegate.engine.detector.contexts.stages import Stages
from tidegate.engine.detector.contexts.windows import Windows
from tidegate.engine.detector.graph import Census, Node, digest
from tidegate.engine.detector.operator_nodes import Operators as Nodes
from tidegate.engine.detector.operators.every import Every
from tidegate.engine.detector.operators.shape import Shape
from tidegate.rules import closers
from tidegate.rules import expression as x
from tidegate.rules.forms import Flat, Nested, Operators, Single, Windowed, forms
from tidegate.rules.model import Context, Rule, Rulebook
from tidegate.rules.parser import unlabelled
from tidegate.rules.stages import Stages as Flattened
from tidegate.rules.windows import Window


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


class _Builder(Nodes):
    """Compiles the root of a rule in its context. `core`: the event types of which all rows count
    and not only the greatest of an instant."""

    core: x.Expression | None = None

    def build(self, expression: x.Expression) -> Node:
        chosen = self.context if isinstance(self.context, Context) else None
        self.chosen_closers = closers.chosen_closers(expression, chosen, self.roots)
        points = {name for name, root in self.roots.items() if root.point}
        found = forms(expression, self.per, self.roots, points).of(self.context)
        match found:
            case Operators():
                return self._node(expression, None)
            case Single(united=united):
                self.core = _core(expression)
                root = self._node(expression, None)
                self.core = None
                if not united:
                    return root
                return _named(self._like(AtOnce(), (root,), root, None), expression)
            case Flat(context=context, stages=flat):
                most = self.settings.carried_per_key_max
                if flat.chain:
                    chain = Chain(context, len(flat.events), flat.span_micros, most)
                    return self._walked(chain, flat, expression)
                return self._walked(Stages(context, flat, most), flat, expression)
            case Windowed(context=context, window=window):
                most = self.settings.carried_per_key_max
                return self._walked(Windows(context, window, most), window, expression)
            case Nested():
                return self._choice(expression, found)

    def _walked(self, shape: Shape, flat: Flattened | Window, expression: x.Expression) -> Node:
        """A choice in one walk over all rows of event types."""
        operands = tuple(self._event(name, all_rows=True) for name in flat.events)
        own = operands[0].own
        timed = isinstance(flat, Window) and flat.length_micros > 0
        found = self._make(
            shape,
            operands,
            own=own,
            every=not own,
            point=False,
            horizon=flat.span_micros,
            timed=timed,
        )
        return _named(found, expression)

    def _node(self, e: x.Expression, horizon: int | None) -> Node:
        if e is self.core:
            return self._rows(e, None)
        return _named(super()._node(e, horizon), e)

    def _all_rows(self, e: x.Expression) -> bool:
        return self.core is not None and _core(e) is self.core

    def _closer(self, window: closers.Window, horizon: int | None) -> Node:
        if window not in self.chosen_closers:
            return super()._closer(window, horizon)
        closer = window.closer
        if horizon is not None:  # an older c closes nothing younger
            closer = x.Within(closer, x.Duration(0, horizon))
        return self._choice(closer, Nested(Context.UNRESTRICTED))

    def _given(self, e: x.Expression) -> Node:
        """What is the same whatever is used up; all that `every` gives at an instant."""
        if isinstance(e, x.Every):
            return _named(self._counted(Every(e.count, all_rows=True), e.part, None), e)
        return self._node(e, None)

    def _choice(self, expression: x.Expression, form: Nested) -> Node:
        """The root of a rule in a context that needs what is not used up (semantics 3)."""
        tree, streams = read(expression, self.zone)
        lasting = self._lasting(expression)
        shape = chosen(form.context, expression, tree, streams, lasting, self.settings)
        # a window may have opened long before what stands in it
        horizon = None if shape.windows else shape.horizon_micros
        root = self._node(expression, None)
        operands = (
            *(self._event(name, all_rows=True) for name in streams.events),
            *(self._given(e) for e in streams.given),
            *(self._node(e, horizon) for e in streams.looked),
        )
        operands = self._alike((root, *operands), horizon)[1:]
        shape = replace(shape, latest=form.kept is not None)
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


def _core(e: x.Expression) -> x.Expression:
    """The part whose occurrences the instances of a single form are."""
    match e:
        case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
            return _core(part)
        case x.Seq(first=part, then=x.Own()) | x.Not(opener=part, closer=x.Own()):
            return _core(part)
    return _core(e.part) if isinstance(e, x.Labelled) else e
