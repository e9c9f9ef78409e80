"""Hypothesis: whole scripts, histories that they mostly expect, and cuts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import reject
from hypothesis import strategies as st

from tests.reference.cuts import watermarks
from tests.reference.eventscript.evaluate import (
    Evaluation,
    Event,
    Instance,
    classify,
    key_rank,
)
from tests.reference.eventscript.expand import Marker
from tests.reference.eventscript.paths import enter, step
from tests.reference.eventscript.reading import program
from tests.reference.eventscript.runs import Run
from tests.reference.eventscript.texts import (
    OUTPUTS,
    STARTS,
    STREAMS,
    Compilable,
    Draw,
    Stream,
    Values,
)
from tidegate.rules.errors import InputError
from tidegate.rules.eventscript import tree

SECOND = 1_000_000
STEPS_MAX = 200
LATER_MAX = 30  # seconds after its last event up to which a history is looked at
TIMERS_MAX = 500  # of a history


class Piece(NamedTuple):
    """A part of a regular expression, as text. `through`: it can be passed without an event, `&`
    and `-` read as `|`. `bound`: it stands as one `prim`."""

    text: str
    through: bool = False
    block: bool = False
    bound: bool = True

    @property
    def prim(self) -> str:
        return self.text if self.bound else f"({self.text})"


@dataclass
class Regexes:
    """Draws regular expressions over the events of some streams."""

    values: Values
    events: dict[str, str]  # type by name
    acting: bool = True
    timed: bool = True
    clocks: bool = True

    def pick(self, *choices: Any) -> Any:
        return self.values.pick(*choices)

    def regex(self, depth: int) -> Piece:
        if depth == 0:
            return self.acting_marker() if self.acting else self.marker()
        kinds = [
            self.sequence,
            self.sequence,
            self.choice,
            self.repeat,
            self.repeat,
            self.operator,
            self.marker,
        ]
        piece: Piece = self.pick(*kinds)(depth)
        return piece

    def marker(self, _: int = 0) -> Piece:
        kinds = [*self.events] * 3 + ["."]
        if self.timed:
            kinds += ["elapse", "arrive" if self.clocks else "elapse"] * len(self.events)
        kind = self.pick(*kinds)
        if kind == ".":
            return Piece(".")
        if kind == "elapse":
            kind = self.pick("elapse", "within")
            of = self.pick("long", "long", "double", "duration")
            if of == "duration":
                return Piece(f"{kind}[{self.values.expression(of, 1)}]({self.variable('time')})")
            amount = self.pick("1", "2", "5", self.values.simple(of))
            unit = self.pick("seconds", "seconds", "minute")
            return Piece(f"{kind}[{amount} {unit}]({self.variable('time')})")
        if kind == "arrive":
            when = self.pick(
                ".::00",
                ".::05",
                ".:01:.",
                f"({self.values.simple('time')} + {self.pick(1, 2)} seconds)",
            )
            return Piece(f"arrive[{when}]({self.variable('time')})")
        return Piece(f"{kind}({self.variable(self.events[kind])})")

    def variable(self, of: str) -> str:
        if of == "{}" or not self.acting or self.pick(True, False):
            return ""
        return self.values.variable(of)

    def acting_marker(self) -> Piece:
        marker = self.marker()
        if self.pick(True, True, True, False):
            return Piece(f"{marker.text} {self.values.block()}", block=True, bound=False)
        return marker

    def sequence(self, depth: int) -> Piece:
        pieces = [self.regex(depth - 1) for _ in range(self.pick(2, 2, 3))]
        if self.acting and self.pick(False, False, True):
            act = Piece(self.values.block(), through=True, block=True)
            pieces.insert(self.pick(*range(len(pieces) + 1)), act)
        return self.row(*pieces)

    def row(self, *pieces: Piece) -> Piece:
        return Piece(
            " ".join(each.prim for each in pieces),
            all(each.through for each in pieces),
            any(each.block for each in pieces),
            bound=False,
        )

    def choice(self, depth: int) -> Piece:
        pieces = [self.regex(depth - 1) for _ in range(self.pick(2, 2, 3))]
        return Piece(
            " | ".join(each.prim for each in pieces),
            any(each.through for each in pieces),
            any(each.block for each in pieces),
            bound=False,
        )

    def repeat(self, depth: int) -> Piece:
        count = self.pick("*", "+", "?", "{2}", "{0,2}", "{1,2}", "{2,}", "{0,}", "{1}")
        item = self.regex(depth - 1)
        if count in ("*", "+", "{2,}", "{0,}"):
            item = self.guarded(item)
        through = item.through or count in ("*", "?", "{0,2}", "{0,}")
        return Piece(item.prim + count, through, item.block, bound=False)

    def guarded(self, item: Piece) -> Piece:
        """What may stand in a loop: no block in it leads to itself."""
        if not (item.through and item.block):
            return item
        return Piece(f"{self.marker().text} {item.prim}", block=True, bound=False)

    def operator(self, depth: int) -> Piece:
        left, right = self.regex(depth - 1), self.regex(depth - 1)
        op = self.pick("&", "-", "lead")
        if op == "&" and self.pick(True, True, False):  # two texts that have an event in common
            left = Piece(f"({self.guarded(left).text})*", True, left.block)
            right = Piece(f"(. | {right.prim})+", right.through, right.block)
            right = right if not right.through else Piece(".*", True)
        if op == "lead":
            return Piece(f"-{right.prim}", right.through, right.block, bound=False)
        return Piece(
            f"{left.prim} {op} {right.prim}",
            left.through or right.through,
            left.block or right.block,
            bound=False,
        )

    def whole(self) -> Piece:
        """Mostly a loop, so that an end is not the end of all emissions."""
        body = self.regex(self.pick(2, 1, 2, 3))
        if self.acting and not body.block:
            body = self.row(body, Piece(self.values.block(), through=True, block=True))
        shape = self.pick("once", "loop", "loop", "loop", "loop", "any")
        if shape == "once":
            return body
        loop = f"({self.guarded(body).text})*"
        if shape == "loop":
            return Piece(loop, True, body.block)
        return Piece(f"({loop} | .*)", True, body.block)


def chosen_streams(draw: Draw, grouped: bool) -> list[Stream]:
    """Keys are of one type. `grouped`: there is one."""
    other = draw(st.sampled_from("DDF"))
    known = sorted(STREAMS.keys() - ({"D", "E"} if other == "F" else {"F"}))
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    if grouped and not any("group" in STREAMS[name].declared for name in names):
        names[0] = draw(st.sampled_from([n for n in known if "group" in STREAMS[n].declared]))
    streams = [STREAMS[name] for name in names]
    if sum(len(each.events) for each in streams) < 2:
        streams.append(STREAMS["B" if "B" not in names else "A"])
    return streams


@st.composite
def scripts(
    draw: Draw,
    acting: bool = True,
    timed: bool = True,
    compilable: bool = False,
    nulls: bool = True,
    grouped: bool = False,
) -> tuple[str, list[Stream]]:
    """The text of a script over 2 to 5 names of events, and its inputs. `compilable`: mostly one of
    those that the engine compiles. `nulls`: there may be some in the inputs' values. `grouped`: one
    of the inputs has a group."""
    streams = chosen_streams(draw, grouped)
    if not nulls:
        streams = [s._replace(values=tuple(filter(_whole, s.values))) for s in streams]
    groups = [each.declared for each in streams if "group" in each.declared]
    keys = {"long": "group[0]"} if groups else {}
    if "F.w" in "".join(groups):
        keys = {"string": "group[0]", "double": "group[1]", "time": "group[2]"}
    values = (Compilable if compilable else Values)(draw, keys)
    events = {name: each.of for each in streams for name in each.events}
    regex = Regexes(values, events, acting, timed, clocks=not compilable).whole()
    starts = {of: [s for s in each if not compilable or "null" not in s]
              for of, each in STARTS.items()}  # fmt: skip
    first = " ".join(
        f"{name} = {draw(st.sampled_from(starts[of])).format(name)};"
        for name, of in sorted(values.used.items())
    )
    lines = [f"in {', '.join(each.declared for each in streams)}\n", OUTPUTS]
    if first:
        lines.append(f"{{ {first} }} {regex.prim}\n")
    else:
        lines.append(f"{regex.text}\n")
    text = "".join(lines)
    try:
        program(text)
    except InputError:
        reject()
    return text, streams


def _whole(value: Any) -> bool:
    """Whether a value has no null in it."""
    return value is not None and (not isinstance(value, dict) or all(map(_whole, value.values())))


def expects(evaluation: Evaluation, event: Event) -> bool:
    """Whether some instance expects the event, one that it starts too."""
    declared = evaluation.inputs[event.input]
    reading = Run({}, (), event.time, "", {}, STEPS_MAX, raw=event.value)
    name = classify(declared, reading)
    if name is None:
        return False
    takers = evaluation.in_key_order()
    if declared.group:
        rank = key_rank([reading.value(each, {}) for each in declared.group])
        started = Instance((), {}, enter(evaluation.root).paths)
        takers = [evaluation.instances.get(rank, started)]

    def fits(marker: Marker) -> bool:
        return isinstance(marker.source, tree.Named) and marker.source.event in (None, name)

    return any(step(evaluation.root, each.paths, fits).alive for each in takers)


class Quiet(Evaluation):
    """Rejects a history in which timers fire again and again, as an `elapse` of a microsecond in a
    loop does."""

    fired = 0

    def timed(self, instance: Instance, now: int, kind: int) -> None:
        self.fired += 1
        if self.fired > TIMERS_MAX:
            reject()
        super().timed(instance, now, kind)


def awaited(evaluation: Evaluation, now: int, values: list[tuple[str, Any]]) -> list[Event]:
    """The events that are expected at `now`, once what is due before has happened."""
    evaluation.fire(lambda at, *_: at < now)
    events = [Event(now, *each) for each in values]
    return [each for each in events if expects(evaluation, each)]


def input_name(stream: Stream) -> str:
    return stream.declared.split(" case")[0].split(" group")[0].split()[-1]


@st.composite
def histories(draw: Draw, text: str, streams: list[Stream]) -> list[Event]:
    """Up to 12 events in order of time, of which most are expected."""
    evaluation = Quiet(program(text), steps_max=STEPS_MAX)
    now = draw(st.sampled_from([0, 57])) * SECOND
    values = [(input_name(each), value) for each in streams for value in each.values]
    history: list[Event] = []
    for number in range(draw(st.sampled_from([6, 8, 12, 4, 1]))):
        now += draw(st.sampled_from([1, 0, 0, 1, 2, 5, 30])) * SECOND
        if not history:
            evaluation.activate(now)
        wanted = awaited(evaluation, now, values)
        if not wanted and history:  # perhaps a timer is waited for
            now += draw(st.sampled_from([5, 30])) * SECOND
            wanted = awaited(evaluation, now, values)
        if not wanted or draw(st.sampled_from([False] * 7 + [True])):
            wanted = [Event(now, *each) for each in values]
        history.append(draw(st.sampled_from(wanted)))
        evaluation.instant(now, [(number, history[-1])])
    evaluation.finish(now + LATER_MAX * SECOND)
    return history


class Example(NamedTuple):
    """`cuts`: instants at which a bucket ends. `until` is None or an instant."""

    text: str
    events: list[Event]
    cuts: list[int]
    until: int | None


@st.composite
def examples(
    draw: Draw,
    timed: bool = True,
    compilable: bool = False,
    nulls: bool = True,
    grouped: bool = False,
) -> Example:
    """A script, a history, where it is cut into buckets, and up to when it is looked at."""
    text, streams = draw(scripts(timed=timed, compilable=compilable, nulls=nulls, grouped=grouped))
    history = draw(histories(text, streams))
    lengths = [int(n) * SECOND for n in re.findall(r"(?:elapse|within)\[(\d+) seconds\]", text)]
    cuts = draw(watermarks([each.time for each in history], lengths))
    until = draw(st.none() | st.integers(0, LATER_MAX).map(lambda s: history[-1].time + s * SECOND))
    return Example(text, history, cuts, until)
