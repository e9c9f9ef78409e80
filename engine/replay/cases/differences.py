"""What a case expected against what happened.

Rows match in the fields that are given, as multisets: `[{key: {a: 1}}, {key: {a: 1}}]` wants two. A
firing counts if it fired: its condition held or it has none, and nothing damped it. One that did
not fire is matched only by a row that names its `condition` or `damped`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.engine.core.text.times import of_text
from tidegate.engine.replay.cases.assignment import assigned, nearest
from tidegate.engine.replay.cases.equality import as_written, micros_of, same
from tidegate.engine.replay.cases.model import Expectation, ExpectedCount, ExpectedRows, Row
from tidegate.engine.replay.cases.world import Observation, Shown
from tidegate.rules.errors import Place

WhyNot = Callable[[str, Mapping[str, Any], int | None], str | None]
"""Why a rule did not fire: for a key, at an instant (None: at any). None: nothing is known."""

FIRED = ("held", "none")
_PARTS = ("tables", "signals", "webhooks", "emissions")


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that was expected and the one that was found, both as a test file has them. `path`:
    from the case on. None: there is none."""

    path: str
    expected: Any
    got: Any


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One expectation that is not met. `of`: what it is about. `expected`, `got`: rows in full, for
    people. `nearest`: the firing that came nearest, of those that are others' or did not fire.
    `why`: why the rule did not fire. `asked`: a `?` stands there."""

    of: str
    place: Place
    differences: tuple[Difference, ...]
    expected: Mapping[str, Any] | None = None
    got: Mapping[str, Any] | None = None
    nearest: Mapping[str, Any] | None = None
    why: str | None = None
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands for a `?`, as YAML has it."""

    place: Place
    value: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """`mismatches`: what is not met. `answers`: of each `?`."""

    mismatches: tuple[Mismatch, ...] = ()
    answers: tuple[Answer, ...] = ()


@dataclass(slots=True)
class Comparer:
    """Compares expectations of a rulebook's cases. `zone`: the rulebook's."""

    zone: str
    why_not: WhyNot | None = None
    _mismatches: list[Mismatch] = field(default_factory=list, init=False)
    _answers: list[Answer] = field(default_factory=list, init=False)

    def compare(self, expect: Expectation, seen: Observation) -> Comparison:
        """Everything that an expectation says against what has happened so far."""
        self._mismatches, self._answers = [], []
        for part, place in expect.asked.items():
            self._ask(part or "expect", place, self._whole(part, seen))
        for rule, wanted in expect.firings.items():
            self._firings(rule, wanted, seen.firings.get(rule, ()))
        for part in _PARTS:
            found: Mapping[str, Sequence[Shown]] = getattr(seen, part)
            for name, rows in getattr(expect, part).items():
                self._rows(f"{part}.{name}", rows, found.get(name, ()))
        for part in ("rejected", "dead"):
            self._count(part, getattr(expect, part), getattr(seen, part))
        if expect.only:
            others = fired(seen).keys() - expect.firings.keys()
            self._unlisted(expect.place, {rule: fired(seen)[rule] for rule in sorted(others)})
        return Comparison(tuple(self._mismatches), tuple(self._answers))

    def unlisted(
        self, place: Place, listed: Iterable[str], seen: Observation
    ) -> tuple[Mismatch, ...]:
        """The firings of rules that no expectation lists, as mismatches."""
        self._mismatches = []
        self._unlisted(place, {r: f for r, f in fired(seen).items() if r not in {*listed}})
        return tuple(self._mismatches)

    def _unlisted(self, place: Place, others: Mapping[str, Sequence[Shown]]) -> None:
        for rule, found in others.items():
            of = f"firings.{rule}"
            for row in found:
                got = self._firing(row)
                difference = Difference(f"{_path(place)}.{of}", None, got)
                self._mismatches.append(Mismatch(of, place, (difference,), got=got))

    def _count(self, part: str, wanted: ExpectedCount | None, found: Sequence[Shown]) -> None:
        if wanted is None:
            return
        if wanted.count is None:
            self._ask(part, wanted.place, len(found))
        elif wanted.count != len(found):
            difference = Difference(_path(wanted.place), wanted.count, len(found))
            self._mismatches.append(Mismatch(part, wanted.place, (difference,)))

    def _ask(self, of: str, place: Place, value: Any) -> None:
        self._answers.append(Answer(place, value))
        difference = Difference(_path(place), "?", value)
        self._mismatches.append(Mismatch(of, place, (difference,), asked=True))

    def _whole(self, part: str, seen: Observation) -> Any:
        """What is written for the `?` of a part, or of everything."""
        parts: dict[str, Any] = {
            "firings": {r: [*map(self._answer, rows)] for r, rows in fired(seen).items()}
        }
        for name in _PARTS:
            found: Mapping[str, Sequence[Shown]] = getattr(seen, name)
            parts[name] = {n: as_written(rows, self.zone) for n, rows in found.items() if rows}
        if part:
            return parts[part]
        del parts["tables"]
        parts |= {"rejected": len(seen.rejected), "dead": len(seen.dead)}
        return {"firings": parts.pop("firings"), "only": True} | {
            name: value for name, value in parts.items() if value
        }

    def _answer(self, row: Shown) -> dict[str, Any]:
        """A firing as `--accept` writes it."""
        shown = self._firing(row)
        kept = {"key": shown["key"]} if shown["key"] else {}
        return kept | {"at": shown["at"], "constituents": len(row["constituents"])}

    def _firing(self, row: Shown) -> dict[str, Any]:
        """A firing in full."""
        shown: dict[str, Any] = as_written(row, self.zone)
        return shown

    def _rows(self, of: str, wanted: ExpectedRows, found: Sequence[Shown]) -> None:
        if wanted.asked:
            self._ask(of, wanted.place, as_written(found, self.zone))
            return
        rows = [{n: written.value for n, written in row.items()} for row in wanted.rows]
        pairs = assigned(len(rows), len(found), lambda a, b: not self._unlike(rows[a], found[b]))
        missing, extra = _left(len(rows), len(found), pairs)
        near = nearest(missing, extra, lambda a, b: self._likeness(rows[a], found[b]))
        for a in missing:
            self._missing(of, wanted, a, rows[a], found[near[a]] if a in near else None)
        for b in extra:
            if wanted.exact and b not in near.values():
                self._extra(of, wanted, found[b])

    def _missing(
        self, of: str, wanted: ExpectedRows, number: int, row: Mapping[str, Any], got: Shown | None
    ) -> None:
        path = f"{_path(wanted.place)}[{number}]"
        place = _place(wanted, number)
        if got is None:
            self._mismatches.append(
                Mismatch(of, place, (Difference(path, row, None),), expected=row)
            )
            return
        found = tuple(self._differences(path, row, got))
        shown = as_written(got, self.zone)
        why = _not_carried(row, got)
        self._mismatches.append(Mismatch(of, place, found, expected=row, got=shown, why=why))

    def _extra(self, of: str, wanted: ExpectedRows, row: Shown) -> None:
        got = as_written(row, self.zone)
        difference = Difference(_path(wanted.place), None, got)
        self._mismatches.append(Mismatch(of, wanted.place, (difference,), got=got))

    def _firings(self, rule: str, wanted: ExpectedRows, found: Sequence[Shown]) -> None:
        of = f"firings.{rule}"
        if wanted.asked:
            answer = [self._answer(row) for row in found if is_fired(row)]
            self._ask(of, wanted.place, answer)
            return
        rows = [{n: written.value for n, written in row.items()} for row in wanted.rows]
        pairs = assigned(
            len(rows), len(found), lambda a, b: not self._unlike(rows[a], found[b], firing=True)
        )
        missing, extra = _left(len(rows), len(found), pairs)
        near = nearest(missing, extra, lambda a, b: self._nearness(rows[a], found[b]))
        for a in missing:
            if a in near:
                self._missing(of, wanted, a, rows[a], found[near[a]])
                continue
            closest = nearest(
                [a], range(len(found)), lambda a, b: self._distance(rows[a], found[b])
            )
            self._missing(of, wanted, a, rows[a], None)
            self._mismatches[-1] = replace(
                self._mismatches[-1],
                nearest=self._firing(found[closest[a]]) if closest else None,
                why=self._why(rule, rows[a]),
            )
        for b in extra:
            if is_fired(found[b]) and b not in near.values():
                self._extra(of, wanted, found[b])

    def _why(self, rule: str, row: Mapping[str, Any]) -> str | None:
        if self.why_not is None:
            return None
        at = of_text(row["at"], self.zone) if "at" in row else None
        return self.why_not(rule, row.get("key") or {}, at)

    def _nearness(self, row: Mapping[str, Any], got: Shown) -> float:
        """How alike a firing is that may stand for the one that was wanted: it has its key."""
        if "key" in row and not same(row["key"], got["key"], self.zone):
            return 0
        return self._distance(row, got)

    def _distance(self, row: Mapping[str, Any], got: Shown) -> float:
        """More for fields that are the same, then for a firing near in time."""
        wrong = self._unlike(row, got, firing=True)
        score = 1 + 4 * (len(row) - len(wrong & row.keys())) + (2 if is_fired(got) else 0)
        if "at" not in row:
            return score
        apart_seconds = abs(of_text(row["at"], self.zone) - micros_of(got["at"])) / 1e6
        return score + 1 / (1 + apart_seconds)

    def _likeness(self, row: Mapping[str, Any], got: Shown) -> float:
        """How alike two rows are; 0 where less than half of the fields are the same."""
        like = len(row) - len(self._unlike(row, got))
        return like if 2 * like >= len(row) else 0

    def _unlike(
        self, row: Mapping[str, Any], got: Shown, *, firing: bool = False
    ) -> frozenset[str]:
        """The fields in which a row is not what was wanted."""
        wrong = {name for name in row if not self._fits(name, row[name], got, firing=firing)}
        if firing and "condition" not in row and got["condition"] not in FIRED:
            wrong.add("condition")
        if firing and "damped" not in row and got["damped"] is not None:
            wrong.add("damped")
        return frozenset(wrong)

    def _fits(self, name: str, value: Any, got: Shown, *, firing: bool) -> bool:
        if name not in got:
            return False
        if firing and name == "fired_at":  # the clock stands just before a whole millisecond
            moment = got[name].replace(microsecond=got[name].microsecond // 1_000 * 1_000)
            return same(value, moment, self.zone) or same(value, got[name], self.zone)
        if not firing or name != "constituents":
            return same(value, got[name], self.zone)
        found = got[name]
        if not isinstance(value, list):
            return bool(value == len(found))
        pairs = assigned(len(value), len(found), lambda a, b: not self._unlike(value[a], found[b]))
        return len(pairs) == len(value) == len(found)

    def _differences(self, path: str, row: Mapping[str, Any], got: Shown) -> Iterator[Difference]:
        """Field by field. Only firings have constituents in a list of rows."""
        firing = "firing_id" in got and "condition" in got
        for name in [*row, "condition", "damped"]:
            if name not in self._unlike(row, got, firing=firing):
                continue
            found = as_written(got.get(name), self.zone)
            if name in row and name == "constituents" and isinstance(row[name], int):
                found = len(got[name])
            expected = row.get(name, "held" if name == "condition" else None)
            yield Difference(f"{path}.{name}", expected, found)


def _not_carried(row: Mapping[str, Any], got: Shown) -> str | None:
    """Why a constituent that is wanted is none of a firing's: it names what none of them has."""
    wanted, found = row.get("constituents"), got.get("constituents")
    if not isinstance(wanted, list) or not found or not isinstance(found[0], Mapping):
        return None
    absent = dict.fromkeys(name for one in wanted for name in one if name not in found[0])
    if not absent:
        return None
    return f"a firing has the columns that its rule reads, and keys, but no {', '.join(absent)}"


def is_fired(row: Shown) -> bool:
    """Whether a detection fired: nothing held it back."""
    return row["condition"] in FIRED and row["damped"] is None


def fired(seen: Observation) -> dict[str, list[Shown]]:
    """By rule that fired, its firings."""
    found = {rule: [*filter(is_fired, rows)] for rule, rows in seen.firings.items()}
    return {rule: rows for rule, rows in found.items() if rows}


def _left(wanted: int, found: int, pairs: Mapping[int, int]) -> tuple[list[int], list[int]]:
    used = {*pairs.values()}
    missing = [a for a in range(wanted) if a not in pairs]
    return missing, [b for b in range(found) if b not in used]


def _place(wanted: ExpectedRows, number: int) -> Place:
    """Where a row is written: at its first value."""
    row: Row = wanted.rows[number]
    return next((written.place for written in row.values()), wanted.place)


def _path(place: Place) -> str:
    """The path of a place in its case: `expect.firings.r`."""
    return place.path.partition(".")[2]
