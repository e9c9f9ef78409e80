"""The rung `where` for the `where` of a rule: which matches there were, which of its terms is not
true of them, and with which values.

Example: `x:(a) ; y:(a)` where `y.v > x.v and y.v > 10`, with a of 5 and then of 3. There is one
match; neither term is true of it: y.v is 3, x.v is 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.evaluator.predicates import column_type, decision
from tidegate.engine.core.event_names import as_written
from tidegate.engine.core.text.layout import listed
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import Batch, Detections, Int64
from tidegate.engine.detect.events.graph.search.asking import values_of
from tidegate.engine.replay.why_not.evidence import Asked, Rung
from tidegate.engine.replay.why_not.probe import Instances, Probe
from tidegate.engine.replay.why_not.words import quoted
from tidegate.rules.algebra.named_parts import Part, Path, named_parts, parts_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Constraint, Context

MATCHES_MAX = 10_000
"""So many matches are looked at; of more, those of the last occurrences."""
_SHOWN_MAX = 10
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class _Asked:
    """The terms of a `where` over n matches. `values`: by column those of each match. `true`: by
    term and match."""

    terms: Sequence[p.Predicate]
    values: Mapping[p.Column, pa.Array]
    true: npt.NDArray[np.bool_]

    @property
    def nearest(self) -> int:
        """The match of which most terms are true; of several the last."""
        count = self.true.sum(axis=0)
        return int(np.flatnonzero(count == count.max())[-1])

    def failed(self, match: int) -> list[p.Predicate]:
        """The terms that are not true of a match."""
        return [
            term for term, true in zip(self.terms, self.true[:, match], strict=True) if not true
        ]

    def values_of(self, terms: Sequence[p.Predicate], match: int) -> dict[str, Any]:
        """The values that some terms compare."""
        names = dict.fromkeys(column for term in terms for column in p.columns(term))
        return {
            str(name): python_values(pa.chunked_array([self.values[name].slice(match, 1)]))[0]
            for name in names
        }


def untrue(asked: Asked, probe: Probe) -> Rung | None:
    """The rung, where there are matches and the rule's `where` is true of none; else None."""
    where = asked.rule.pattern.where
    if where is None or not len(_span(asked, probe.one(unlabelled(asked.rule.pattern.on)))):
        return None
    left = probe.left
    if left is None or len(_span(asked, left)):
        return None
    parts = named_parts(as_written(asked.rule.pattern.on))
    on = _marked(asked.rule.pattern.on, {part.path: str(n) for n, part in enumerate(parts)})
    found = _span(asked, probe.labelled(on, Context.UNRESTRICTED, _last(asked, probe)))
    if not len(found):
        found = _span(asked, probe.labelled(on, Context.RESTRICTED, probe.batches))
    said = None
    if len(found) and found.found is not None:
        with suppress(OutsideError):
            said = _ask(where, parts, found.found, found.number)
    if said is None or said.true.all(axis=0).any():  # of the last occurrences more may be a match
        sentence = f"`{asked.rule.pattern.text}` came about{asked.words.of_key}, but the rule's"
        sentence += f" `where: {where.text}` is not true of it."
        return Rung("where", False, sentence, {"text": where.text})
    return _rung(asked, where, found, said)


def _span(asked: Asked, found: Instances) -> Instances:
    return found.span(asked.since, asked.until)


def _last(asked: Asked, probe: Probe) -> Mapping[str, Batch]:
    """The last occurrences, so many that there are no more than MATCHES_MAX matches."""
    roles = sum(isinstance(node, x.Name) for node in asked.rule.pattern.on.walk())
    most = max(2, int(MATCHES_MAX ** (1 / max(1, roles))))
    found = {}
    for event, batch in probe.batches.items():
        known = batch.until(asked.until)
        found[event] = known.take(np.arange(max(0, len(known) - most), len(known)))
    return found


def _marked(e: x.Expression, marks: Mapping[Path, str], path: Path = ()) -> x.Expression:
    """An expression in which each event type at these paths has its mark as a label of its own."""
    if isinstance(e, x.Labelled):
        return replace(e, part=_marked(e.part, marks, path))
    if path in marks:
        return x.Labelled(marks[path], e)
    operands = [_marked(one, marks, (*path, n)) for n, one in enumerate(e.operands())]
    return x.with_operands(e, operands)


def _ask(where: Constraint, parts: Sequence[Part], found: Detections, numbers: Int64) -> _Asked:
    """What each term says of some matches. Raises OutsideError for types that do not compare."""
    terms = p.conjuncts(where.tree)
    marks = {
        column: {str(parts.index(part)) for part in parts_of(column, parts)}
        for column in p.columns(where.tree)
    }
    values = {column: _values(column, marks[column], found, numbers) for column in marks}
    true = []
    for term in terms:
        mine = {str(column): values[column] for column in p.columns(term)}
        types = tuple((name, each.type) for name, each in mine.items())
        true.append(decision(term, types).true(mine, len(numbers)))
    return _Asked(terms, values, np.array(true))


def _values(
    column: p.Column, marks: Collection[str], found: Detections, numbers: Int64
) -> pa.Array:
    """The values of a column in some matches; null where its part is absent."""
    entries = np.full(len(found), _ABSENT)
    if found.label is not None:
        codes = [n for n, label in enumerate(found.labels) if label in marks]
        mine = np.flatnonzero(np.isin(found.label, codes))
        entries[np.searchsorted(found.offsets, mine, side="right") - 1] = mine
    chosen = entries[numbers]
    pieces, places = [], [np.flatnonzero(chosen == _ABSENT)]
    for code in np.unique(found.event_code[chosen[chosen != _ABSENT]]).tolist():
        at = np.flatnonzero((chosen != _ABSENT) & (found.event_code[chosen] == code))
        batch = found.batches[found.events[code]]
        pieces.append(values_of(batch, found.event_row[chosen[at]], column))
        places.append(at)
    kind = column_type([piece.type for piece in pieces])
    whole = pa.concat_arrays([pa.nulls(len(places[0]), kind), *(one.cast(kind) for one in pieces)])
    return whole.take(pa.array(np.argsort(np.concatenate(places))))


def _rung(asked: Asked, where: Constraint, found: Instances, said: _Asked) -> Rung:
    words, nearest, count = asked.words, said.nearest, len(found)
    failed = said.failed(nearest)
    values = said.values_of(failed, nearest)
    texts = [_text(where, term) for term in failed]
    shown = ", ".join(f"{name} is {quoted(each)}" for name, each in values.items())
    of = f"of `{asked.rule.pattern.text}`{words.of_key}"
    when = words.between(int(found.start[nearest]), int(found.end[nearest]))
    sentence = f"There is 1 match {of}, {when}, but the rule's `where` is not true of it"
    if count > 1:
        sentence = f"There are {count:,} matches {of}, but the rule's `where` is true of none. The"
        sentence += f" nearest is the one {when}"
    sentence += f": {listed([f'`{text}`' for text in texts])} is not true ({shown})."
    figures = {
        "text": where.text,
        "failed": texts,
        "values": values,
        "matches": count,
        "terms": [
            {"text": _text(where, term), "true_of": int(true.sum())}
            for term, true in zip(said.terms, said.true, strict=True)
        ],
        "candidates": [*_candidates(where, found, said)],
    }
    return Rung("where", False, sentence, figures)


def _candidates(where: Constraint, found: Instances, said: _Asked) -> Iterator[dict[str, Any]]:
    """The last matches, each with the terms that are not true of it."""
    for n in range(max(0, len(found) - _SHOWN_MAX), len(found)):
        failed = said.failed(n)
        yield {
            "start": int(found.start[n]),
            "end": int(found.end[n]),
            "failed": [_text(where, term) for term in failed],
            "values": said.values_of(failed, n),
        }


def _text(where: Constraint, term: p.Predicate) -> str:
    return where.text[term.span.start : term.span.end]
