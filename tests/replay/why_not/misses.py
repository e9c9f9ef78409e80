"""Planted misses: by rung, situations in which a rule does not fire for a key, and why not.

Each maker draws its own times, keys and noise, so that each number is another situation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.replay.why_not.runs import Line, at, run, with_conditions
from tests.support.make import entry
from tidegate.engine.core.entries import Progress, Turn
from tidegate.engine.replay.why_not.evidence import (
    ActiveSpan,
    DroppedRow,
    Evidence,
    RefusedRow,
)

UNTIL = 1_000
OTHER = 99  # a key for which everything happens at other times


@dataclass(frozen=True)
class Miss:
    """A question whose first no is known. `says`: words of its sentence; `figures`: some of its
    evidence."""

    evidence: Evidence
    key: Mapping[str, Any]
    instant: int
    since: int | None = None
    says: tuple[str, ...] = ()
    figures: Mapping[str, Any] | None = None


Maker = Callable[[Random], Miss]


def book(on: str, more: str = "", where: str = "", key: str = "k", kind: str = "bigint") -> str:
    """A rulebook of one rule `r` per key over the signals a, b, c, d."""
    where = f", where: {where}" if where else ""
    per = f"per: {key}, " if key else ""
    signals = "\n".join(
        f"  {name}: {{signal: {{k: {kind}, v: bigint}}{where if name == 'b' else ''}}}"
        for name in "abcd"
    )
    return (
        f"rulebook: planted\ntimezone: UTC\nevents:\n{signals}\n"
        f'rules:\n  r: {{{per}on: "{on}"{", " + more if more else ""}}}\n'
    )


def line(event: str, seconds: float, key: Any = 7, v: int = 1) -> Line:
    return event, seconds, {"k": key, "v": v}


def noise(draw: Random, names: str = "abcd", key: Any = OTHER) -> list[Line]:
    """Events of another key."""
    return [line(draw.choice(names), draw.randint(0, 900), key) for _ in range(draw.randint(0, 6))]


def spaced(draw: Random, *gaps: tuple[int, int]) -> list[int]:
    """Instants one after another, each so much later than the one before."""
    now, found = draw.randint(1, 100), []
    for least, most in gaps:
        found.append(now)
        now += draw.randint(least, most)
    return [*found, now]


# -- active, seen -----------------------------------------------------------------------------


def not_yet_active(draw: Random) -> Miss:
    begin = draw.randint(200, 800)
    lines = [line("a", begin + 10), line("b", begin + 20)]
    evidence = run(book("a ; b"), lines, UNTIL, since=begin)
    early = begin - draw.randint(1, 150)
    return Miss(evidence, {"k": 7}, at(early), says=("became active only at",))


def parked(draw: Random) -> Miss:
    end, again = draw.randint(100, 300), draw.randint(600, 800)
    spans = [ActiveSpan(at(0), at(end), "parked: too much is carried"), ActiveSpan(at(again))]
    first, then = end + draw.randint(10, 50), end + draw.randint(60, 200)
    lines = [line("a", first), line("b", then), *noise(draw)]
    evidence = run(book("a ; b"), lines, UNTIL, active={"r": spans})
    return Miss(
        evidence, {"k": 7}, at(then), at(then), says=("parked: too much is carried", "active again")
    )


def switched_off(draw: Random) -> Miss:
    lines = [line("a", draw.randint(0, 100)), line("b", draw.randint(200, 300))]
    evidence = run(book("a ; b", "enabled: false"), lines, UNTIL, active={"r": []})
    return Miss(evidence, {"k": 7}, at(draw.randint(300, 900)), says=("enabled: false",))


def not_seen(draw: Random) -> Miss:
    until = draw.randint(200, 500)
    lines = [line("a", draw.randint(0, 100)), *noise(draw, "cd")]
    evidence = run(book("a ; b"), [one for one in lines if one[1] <= until], until)
    return Miss(evidence, {"k": 7}, at(until + draw.randint(1, 400)), says=("is later",))


def nothing_stored(draw: Random) -> Miss:
    evidence = replace(run(book("a ; b"), [line("a", 1)], 10), watermark=None)
    return Miss(evidence, {"k": 7}, at(draw.randint(1, 900)), says=("no bucket",))


# -- occurrences, rejected, where -------------------------------------------------------------

NEEDING = ("a ; b", "a and b", "not(c)[a, b]", "A(a, b, c)", "A*(a, c, b)", "a ; b without c")


def missing_type(draw: Random) -> Miss:
    on = draw.choice(NEEDING)
    lines = [line("a", draw.randint(0, 400)), *noise(draw), line("b", 500, 70)]
    evidence = run(book(on), lines, UNTIL)
    return Miss(
        evidence, {"k": 7}, at(900), says=("No `b` came for k 7", "k 70"),
        figures={"missing": ["b"]},
    )  # fmt: skip


def missing_some(draw: Random) -> Miss:
    lines = [line("b", draw.randint(0, 100)), line("b", draw.randint(200, 400))]
    evidence = run(book("any(2, a, b, c)"), lines, UNTIL)
    return Miss(evidence, {"k": 7}, at(900), figures={"missing": ["a", "c"]})


def missing_both(draw: Random) -> Miss:
    evidence = run(book(draw.choice(NEEDING)), [line("d", 5), *noise(draw)], UNTIL)
    return Miss(evidence, {"k": 7}, at(900), figures={"missing": ["a", "b"]})


def text_for_number(draw: Random) -> Miss:
    number = draw.randint(1, 50)
    lines = [line("a", 10, number), line("b", draw.randint(11, 400), number), *noise(draw)]
    evidence = run(book("a ; b"), lines, UNTIL)
    return Miss(evidence, {"k": str(number)}, at(900), says=(f"for k {number}, which is no text",))


def number_for_text(draw: Random) -> Miss:
    text = str(draw.randint(1, 50))
    lines = [line("a", 10, text), line("b", draw.randint(11, 400), text)]
    evidence = run(book("a ; b", kind="string"), lines, UNTIL)
    return Miss(evidence, {"k": int(text)}, at(900), says=(f"k '{text}', which is a text",))


def came_later(draw: Random) -> Miss:
    lines = [line("a", draw.randint(0, 100)), line("b", draw.randint(500, 900)), *noise(draw, "cd")]
    evidence = run(book("a ; b"), lines, UNTIL)
    return Miss(evidence, {"k": 7}, at(draw.randint(200, 400)), says=("`b` came later",))


def clock_not_reached(draw: Random) -> Miss:
    lines = [line("a", draw.randint(0, 400)), *noise(draw)]
    evidence = run(book("a ; at <(11:30:00)03/02/2026>"), lines, UNTIL)
    return Miss(evidence, {"k": 7}, at(900), says=("The clock did not reach",))


def refused_for(instant: int, draw: Random, key: Any = 7) -> RefusedRow:
    reason = draw.choice(["late: `time: t` is more than 10 min before its commit", "where raises"])
    return RefusedRow("b", at(instant), reason, {"k": key, "v": 1})


def refused_type(draw: Random) -> Miss:
    first, then = draw.randint(0, 200), draw.randint(300, 500)
    refused = [refused_for(then, draw), refused_for(then, draw, OTHER)]
    evidence = run(book("a ; b"), [line("a", first), *noise(draw)], UNTIL, refused=refused)
    return Miss(evidence, {"k": 7}, at(900), says=("A `b` for k 7", "was rejected"))


def refused_one_of_several(draw: Random) -> Miss:
    one, two, three, _ = spaced(draw, (5, 20), (5, 20), (5, 20))
    lines = [line("b", one), line("b", three), *noise(draw)]
    refused = [refused_for(two, draw)]
    evidence = run(book("any(3, b*) within 2 min"), lines, UNTIL, refused=refused)
    return Miss(evidence, {"k": 7}, at(900), figures={"instant": at(two)})


def dropped_by_where(draw: Random) -> Miss:
    amount = draw.randint(0, 100)
    lines = [line("a", draw.randint(0, 200)), line("b", draw.randint(300, 500), v=amount)]
    evidence = run(book("a ; b", where="v > 100"), [*lines, *noise(draw)], UNTIL)
    return Miss(
        evidence, {"k": 7}, at(900), says=("where: v > 100", f"v is {amount}"),
        figures={"values": {"v": amount}},
    )  # fmt: skip


def dropped_one_of_several(draw: Random) -> Miss:
    one, two, three, _ = spaced(draw, (5, 20), (5, 20), (5, 20))
    lines = [line("b", one, v=200), line("b", two, v=50), line("b", three, v=200)]
    evidence = run(book("any(3, b*) within 2 min", where="v > 100"), lines, UNTIL)
    return Miss(evidence, {"k": 7}, at(900), figures={"instant": at(two), "by": "where"})


def dropped_by_of(draw: Random) -> Miss:
    then = draw.randint(300, 500)
    row, old = {"k": 7, "v": 1, "status": "open"}, {"k": 7, "v": 0, "status": "open"}
    dropped = [DroppedRow("b", at(then), "of", "status", row, old)]
    evidence = run(book("a ; b"), [line("a", draw.randint(0, 200))], UNTIL, dropped=dropped)
    return Miss(evidence, {"k": 7}, at(900), says=("changes none of status", "status is open"))


# -- parts ------------------------------------------------------------------------------------


def parts(
    on: str, lines: Callable[[Random], Sequence[Line]], relaxed: str | None, *says: str
) -> Maker:
    """A rule whose expression lacks one thing."""

    def make(draw: Random) -> Miss:
        evidence = run(book(on), [*lines(draw), *noise(draw)], UNTIL)
        figures = {"relaxed": relaxed} if relaxed else {}
        return Miss(evidence, {"k": 7}, at(900), says=says, figures=figures)

    return make


def steps(names: str, *gaps: tuple[int, int]) -> Callable[[Random], list[Line]]:
    """Events of the key one after another."""

    def draw_lines(draw: Random) -> list[Line]:
        instants = spaced(draw, *gaps) if gaps else [draw.randint(0, 400)]
        return [line(name, time) for name, time in zip(names, instants, strict=True)]

    return draw_lines


NEAR, FAR = (1, 50), (70, 200)
PARTS: tuple[Maker, ...] = (
    parts("(a ; b) within 1 min", steps("ab", FAR), "within", "longer than `within 1 min`"),
    parts("(a and b) within 1 min", steps("ba", FAR), "within", "longer than `within 1 min`"),
    parts("((a ; b) within 1 min) ; c", steps("abc", FAR, NEAR), "within"),
    parts("any(3, a*) within 1 min", steps("aaa", (40, 50), (40, 50)), "within"),
    parts("(a ; b) without c", steps("acb", NEAR, NEAR), "without", "`c` came for k 7"),
    parts("not(c)[a, b]", steps("acb", NEAR, NEAR), "not", "after `a`"),
    parts("not(b)[a, [2 min]]", steps("ab", (5, 110)), "not", "`b` came for k 7"),
    parts("not(c)[a, b] ; d", steps("acbd", NEAR, NEAR, NEAR), "not"),
    parts("a ; b", steps("ba", NEAR), "order", "No `b` came for k 7 after `a`"),
    parts("(a and b) ; c", steps("acb", NEAR, NEAR), "order"),
    parts("A*(a, c, b)", steps("ba", NEAR), "order"),
    parts("not(c)[a, b]", steps("ba", NEAR), "order"),
    parts("A(a, b, c)", steps("acb", NEAR, NEAR), "window", "closed by `c`"),
    parts("A(a, b, c)", steps("ba", NEAR), "order"),
    parts("A(a, b, [1 min])", steps("ab", FAR), "window", "was closed"),
    parts("P(a, [1 min], c)", steps("ac", NEAR), "window", "before its tick"),
    parts("any(3, a*)", steps("aa", NEAR), "count", "2 of the 3 `a`"),
    parts("every(4, a)", steps("aaa", NEAR, NEAR), "count", "3 of the 4 `a`"),
    parts("a[3]", steps("aa", NEAR), "count", "2 of the 3 `a`"),
    parts("a + [20 min]", steps("a"), None, "is due"),
    parts("P*(a, [1 min], [20 min])", steps("a"), None, "is due"),
)


def at_one_instant(draw: Random) -> Miss:
    when = draw.randint(0, 500)
    evidence = run(book("a ; b"), [line("a", when), line("b", when), *noise(draw)], UNTIL)
    return Miss(evidence, {"k": 7}, at(900), says=("at the same instant",))


def elsewhen(draw: Random) -> Miss:
    one, two, _ = spaced(draw, NEAR, NEAR)
    evidence = run(book("a ; b"), [line("a", one), line("b", two), *noise(draw)], UNTIL)
    when = at(two + draw.randint(1, 100))
    return Miss(evidence, {"k": 7}, when, when, says=("Nothing completed `a ; b`", "was last"))


# -- context ----------------------------------------------------------------------------------


def context(name: str, on: str, names: str, used: str) -> Maker:
    """At the last line there is an instance that the context does not choose: `used` of it is used
    up."""

    def make(draw: Random) -> Miss:
        gaps = [(2, 60)] * (len(names) - 1)
        instants = spaced(draw, *gaps)
        lines = [line(n, time) for n, time in zip(names, instants, strict=True)]
        evidence = run(book(on, f"context: {name}"), [*lines, *noise(draw)], UNTIL)
        when = at(instants[-1])
        return Miss(evidence, {"k": 7}, when, when, says=(f"context `{name}`", f"`{used}` of"))

    return make


CONTEXTS: tuple[Maker, ...] = (
    context("chronicle", "a ; b", "abb", "a"),
    context("recent", "a ; b", "abb", "a"),
    context("recent", "a ; b", "aabb", "a"),
    context("continuous", "a ; b", "abb", "a"),
    context("cumulative", "a ; b", "abb", "a"),
    context("chronicle", "a and b", "abb", "a"),
    context("cumulative", "any(2, a*)", "aaa", "a"),
    context("chronicle", "any(2, a*)", "aaa", "a"),
)

# -- if, damping, disabled_for, held ----------------------------------------------------------


def condition_failed(draw: Random) -> Miss:
    one, two, _ = spaced(draw, NEAR, NEAR)
    v, w = draw.randint(0, 50), draw.randint(0, 50)
    lines = [line("a", one, v=v), line("b", two, v=w), *noise(draw)]
    evidence = run(book("a ; b", "if: sum(v) > 100"), lines, UNTIL)
    return Miss(
        evidence, {"k": 7}, at(900), says=("if: sum(v) > 100", f"is {v + w}"),
        figures={"values": {"sum(v)": v + w}},
    )  # fmt: skip


def condition_of_one_row(draw: Random) -> Miss:
    v = draw.randint(0, 50)
    evidence = run(book("a", "if: max(v) > 100 and count(*) > 0"), [line("a", 5, v=v)], UNTIL)
    return Miss(evidence, {"k": 7}, at(900), figures={"values": {"max(v)": v, "count(*)": 1}})


def damped(damping: str, kind: str, count: int = 1) -> Maker:
    def make(draw: Random) -> Miss:
        first = draw.randint(0, 100)
        instants = [first + n * draw.randint(2, 9) for n in range(count + 1)]
        instants = sorted({*instants, first + 50})[: count + 1]
        evidence = run(book("a", damping), [*(line("a", t) for t in instants), *noise(draw)], UNTIL)
        when = at(instants[-1])
        until = at(instants[0] + 600)
        return Miss(evidence, {"k": 7}, when, when, (f"`{kind}` dropped it",), {"until": until})

    return make


DAMPED: tuple[Maker, ...] = (
    damped("cooldown: 10 min", "cooldown"),
    damped("throttle: 1 per 10 min", "throttle"),
    damped("throttle: 3 per 10 min", "throttle", 3),
    damped("dedupe: {by: [v], within: 10 min}", "dedupe"),
)


def disabled_for(draw: Random) -> Miss:
    one, two, _ = spaced(draw, NEAR, NEAR)
    key = draw.randint(1, 9)
    lines = [line("a", one, key), line("b", two, key), *noise(draw)]
    more = f"disabled_for: [{key}]{draw.choice(['', ', cooldown: 1 min'])}"
    evidence = run(book("a ; b", more), lines, UNTIL)
    return Miss(evidence, {"k": key}, at(900), says=(f"disabled for k {key}",))


def with_entry(draw: Random) -> tuple[Evidence, str]:
    """A firing of `r`, and its id."""
    one, two, _ = spaced(draw, NEAR, NEAR)
    lines = [line("a", one), line("b", two), *noise(draw)]
    evidence = run(book("a ; b"), lines, UNTIL)
    mine = [
        id
        for some in evidence.firings["r"]
        for id, key in zip(some.hex_ids().to_pylist(), some.firings["k"].to_pylist(), strict=True)
        if key == 7
    ]
    return evidence, mine[-1]


def stuck(state: str) -> Maker:
    def make(draw: Random) -> Miss:
        evidence, id = with_entry(draw)
        progress = Progress(state=state, attempts=draw.randint(1, 9), error="table t is missing")
        one = entry("r", firing_ids=(id,), number=5, progress=progress)
        says = (f"entry 5 is {state}", "table t is missing")
        return Miss(replace(evidence, entries=[one]), {"k": 7}, at(900), says=says)

    return make


def behind(draw: Random) -> Miss:
    evidence, id = with_entry(draw)
    progress = Progress(state="held", attempts=3, error="table t is missing")
    ahead = entry("r", firing_ids=("00" * 16,), number=4, progress=progress, turn=Turn(place=4))
    one = entry("r", firing_ids=(id,), number=5, turn=Turn(place=5))
    said = ("waits behind entry 4",)
    return Miss(replace(evidence, entries=[ahead, one]), {"k": 7}, at(900), says=said)


def unasked(draw: Random) -> Miss:
    evidence, id = with_entry(draw)
    evidence = replace(with_conditions(evidence, "r", "dead"), unasked={id: "table t is missing"})
    return Miss(evidence, {"k": 7}, at(900), says=("could not be asked", "table t is missing"))


MAKERS: Mapping[str, Sequence[Maker]] = {
    "active": (not_yet_active, parked, switched_off),
    "seen": (not_seen, nothing_stored),
    "occurrences": (
        missing_type,
        missing_some,
        missing_both,
        text_for_number,
        number_for_text,
        came_later,
        clock_not_reached,
    ),
    "rejected": (refused_type, refused_one_of_several),
    "where": (dropped_by_where, dropped_one_of_several, dropped_by_of),
    "parts": (*PARTS, at_one_instant, elsewhen),
    "context": CONTEXTS,
    "if": (condition_failed, condition_of_one_row),
    "damping": DAMPED,
    "disabled_for": (disabled_for,),
    "held": (stuck("held"), stuck("dead"), stuck("skipped"), behind, unasked),
}  # fmt: skip
