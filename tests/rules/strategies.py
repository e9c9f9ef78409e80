"""Hypothesis strategies for event expressions, as trees that `parse` can return."""

from __future__ import annotations

from hypothesis import strategies as st

from tidegate.rules.expressions import clock_texts
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.parser import own_terminator

names = st.sampled_from(["a", "b", "c", "A", "P", "order", "within_x"])
counts = st.integers(1, 9)

_SECOND = 1_000_000
micros = st.one_of(
    st.integers(1, 10**15),
    st.integers(1, 10_000).map(lambda n: n * _SECOND),
    st.integers(1, 400).map(lambda n: n * 86_400 * _SECOND),
)
durations = st.one_of(
    micros.map(lambda n: x.Duration(0, n)),
    st.integers(1, 500).map(lambda n: x.Duration(n, 0)),
    st.builds(x.Duration, st.integers(1, 500), micros),
)


def _part(low: int, high: int) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), st.integers(low, high).map(str))


written_clocks = st.builds(
    "<({}:{}:{}){}/{}/{}>".format,
    _part(0, 23),
    _part(0, 59),
    st.integers(0, 59).map(str),
    _part(1, 12),
    _part(1, 28),
    st.one_of(st.just("*"), st.integers(1970, 2100).map(str)),
)
leaves: st.SearchStrategy[x.Expression] = st.one_of(
    names.map(x.Name),
    names.map(x.BeginOf),
    names.map(x.EndOf),
    names.map(x.Failed),
    names.map(x.Resolved),
    written_clocks.map(clock_texts.clock),
    st.sampled_from(["0 17 * * mon-fri", "*/5 8-18 1,15 * *"]).map(x.Cron),
)
samples = st.one_of(
    st.none(),
    st.just("level"),
    st.text("ab'\" ", min_size=1).filter(str.strip),
)


def _nodes(inner: st.SearchStrategy[x.Expression]) -> st.SearchStrategy[x.Expression]:
    many = st.lists(inner, min_size=2, max_size=4).map(tuple)
    last = st.one_of(inner, durations.map(x.Own))

    def windowed(kind: type, middle: st.SearchStrategy[object]) -> st.SearchStrategy[x.Expression]:
        return st.builds(
            lambda opener, part, closer: kind(opener, part, own_terminator(opener, closer)),
            inner,
            middle,
            last,
        )

    def periodic(kind: type) -> st.SearchStrategy[x.Expression]:
        return st.builds(
            lambda opener, period, closer, sample: kind(
                opener, period, own_terminator(opener, closer), sample
            ),
            inner,
            durations,
            last,
            samples,
        )

    return st.one_of(
        many.map(x.Or),
        many.map(x.And),
        st.builds(x.AnyOf, counts, many),
        st.builds(x.AnyRepeat, counts, inner),
        st.builds(lambda a, b: x.Seq(a, own_terminator(a, b)), inner, last),
        st.builds(x.Minus, inner, inner),
        st.builds(x.Within, inner, durations),
        st.builds(lambda b, a, c: x.Not(b, a, own_terminator(a, c)), inner, inner, last),
        windowed(x.Aperiodic, inner),
        windowed(x.AperiodicStar, inner),
        periodic(x.Periodic),
        periodic(x.PeriodicStar),
        st.builds(x.Plus, inner, durations),
        st.builds(x.Nth, inner, counts),
        st.builds(x.Every, counts, inner),
        st.builds(x.Labelled, names, inner),
    )


expressions: st.SearchStrategy[x.Expression] = st.recursive(leaves, _nodes, max_leaves=12)
