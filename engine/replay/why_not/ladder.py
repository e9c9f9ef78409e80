"""The ladder of `why-not`: questions in the order of a firing's life, up to the first whose answer
is no.

Example: `quick` did not fire for card 7. It was active, the instant is seen, two `large` came, none
was rejected or dropped; but the two lie 5 min 12 s apart: the rung `parts` says no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tidegate.engine.core.text.layout import counted, listed
from tidegate.engine.replay.why_not.arrivals import Arrivals
from tidegate.engine.replay.why_not.context import all_rows, chosen
from tidegate.engine.replay.why_not.evidence import Asked, Evidence, Key, Rung
from tidegate.engine.replay.why_not.fate import Fate, Firing, firings_of
from tidegate.engine.replay.why_not.parts import Parts
from tidegate.engine.replay.why_not.probe import Probe
from tidegate.engine.replay.why_not.timeline import NOTHING, Timeline, of_firing, of_sources
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.expressions.durations import length
from tidegate.rules.expressions.windows import Window

RUNGS = (
    "active", "seen", "occurrences", "rejected", "where", "parts", "context", "if", "damping",
    "disabled_for", "held", "fired",
)  # fmt: skip


class Climbed(NamedTuple):
    """The rungs up to the first that is not ok, and what was looked at for them."""

    rungs: tuple[Rung, ...]
    timeline: Timeline


def ladder(
    evidence: Evidence, rule: str, key: Key, instant: int, since: int | None = None
) -> tuple[Rung, ...]:
    """Why a rule did not fire for a key in [`since`, `instant`], microseconds; `since` None: at any
    time up to `instant`. The last rung is the first that is not ok, or `fired`.

    `key`: its columns, empty for a rule without `per`. Raises InputError for a rule that is not
    there, or other columns.
    """
    return climbed(evidence, rule, key, instant, since).rungs


def climbed(
    evidence: Evidence, rule: str, key: Key, instant: int, since: int | None = None
) -> Climbed:
    """As `ladder`, with what came for the key."""
    check(evidence, rule, key)
    asked = Asked(evidence, rule, _in_order(evidence, rule, key), instant, since)
    found, seen = list[Rung](), [NOTHING]
    for rung in _rungs(asked, since, seen):
        found.append(rung)
        if not rung.ok:
            break
    return Climbed(tuple(found), seen[-1])


def why_not(
    evidence: Evidence, rule: str, key: Key, instant: int, since: int | None = None
) -> str | None:
    """The first no of the ladder as a sentence; None: it fired."""
    last = ladder(evidence, rule, key, instant, since)[-1]
    return None if last.ok else last.sentence


def needs_sources(
    evidence: Evidence, rule: str, key: Key, instant: int, since: int | None = None
) -> bool:
    """Whether only the sources can tell: the rule was active, the instant is seen, and no firing is
    kept. Arguments and errors are those of `ladder`."""
    check(evidence, rule, key)
    asked = Asked(evidence, rule, _in_order(evidence, rule, key), instant, since)
    return not firings_of(asked, since) and _active(asked, False).ok and _seen(asked, False).ok


def _in_order(evidence: Evidence, rule: str, key: Key) -> Key:
    return {name: key[name] for name in evidence.book.rules[rule].pattern.key_names}


def _rungs(asked: Asked, since: int | None, seen: list[Timeline]) -> Iterator[Rung]:
    """The rungs. What was looked at is added to `seen`."""
    firings = firings_of(asked, since)
    yield _active(asked, bool(firings))
    yield _seen(asked, bool(firings))
    detected = None
    fate = Fate(asked, firings)
    if fate.firing is not None:
        seen.append(of_firing(fate.firing))
        yield from _kept(asked, fate.firing)
    elif asked.evidence.unread:
        unread, errors = asked.evidence.unread, asked.evidence.errors
        what = f"What came{asked.words.of_key} cannot be told: {unread}"
        yield Rung("occurrences", False, f"{what}.", {"unread": unread, "errors": {**errors}})
    else:
        probe = Probe(asked)
        again = probe.detected.span(asked.since, asked.until).last()
        detected = None if again is None else again[1]
        arrivals = Arrivals(asked, probe, detected=again is not None)
        seen.append(of_sources(asked, probe, arrivals))
        yield from _looked_up(asked, probe, arrivals, detected=again is not None)
        fate = Fate(asked, firings, detected)
    yield from (fate.condition(), fate.damping(), fate.disabled_for(), fate.held(), fate.fired())


def _kept(asked: Asked, firing: Firing) -> Iterator[Rung]:
    """The rungs up to `context` where a firing is kept: the sources need not be read."""
    counts = Counter(firing.events)
    words, said = asked.words, [counted(n, f"`{e}`", f"`{e}`") for e, n in counts.items()]
    it = f"It was detected{words.of_key} at {words.at(firing.end)}"
    yield Rung(
        "occurrences", True, f"{it}{f', of {listed(said)}' if said else ''}.",
        {"firing_id": firing.id, "constituents": dict(counts)},
    )  # fmt: skip
    for name in ("rejected", "where", "parts"):
        yield Rung(name, True, f"{it}.", {})
    if isinstance(asked.rule.pattern.on, Window):
        yield all_rows()
        return
    context = "select" if asked.rule.pattern.selection else str(asked.rule.pattern.context)
    yield Rung("context", True, f"The context `{context}` chose it.", {"context": context})


def _looked_up(asked: Asked, probe: Probe, arrivals: Arrivals, *, detected: bool) -> Iterator[Rung]:
    """The rungs up to `context`, from the sources. `detected`: the rule was, once more."""
    yield arrivals.occurrences()
    yield arrivals.rejected()
    yield arrivals.where()
    yield Parts(asked, probe).rung(detected=detected)
    yield chosen(asked, probe, detected=detected)


def _active(asked: Asked, fired: bool) -> Rung:
    """Whether the rule saw occurrences at the instant."""
    name, words = asked.rule.name, asked.words
    spans = asked.evidence.active.get(name, ())
    figures = [{"begin": s.begin, "end": s.end, "ended_by": s.ended_by} for s in spans]
    over = asked.span is not None and asked.span.end is not None and asked.span.end < asked.until
    known_from = asked.evidence.known_from
    if fired or (asked.span is not None and not over):
        begin = asked.span.begin if asked.span else asked.until
        since = "at least since" if begin == known_from else "since"
        when = f" {since} {words.at(begin)}" if asked.span else ""
        sentence = f"Rule {name} was active{when}."
        if asked.span and asked.span.before and asked.since < begin:
            sentence += f" Before that {asked.span.before}."
        return Rung("active", True, sentence, {"active": figures})
    if known_from is not None and asked.until < known_from:
        sentence = (
            f"Whether rule {name} was active cannot be told: what was before"
            f" {words.at(known_from)} is not kept any more (history_retention_days)."
        )
        return Rung("active", False, sentence, {"active": figures, "known_from": known_from})
    if not asked.rule.enabled and not spans:
        sentence = f"Rule {name} is switched off in the rulebook (`enabled: false`)."
    elif not spans:
        sentence = f"Rule {name} was never active."
    elif asked.span is None:
        sentence = f"Rule {name} became active only at {words.at(spans[0].begin)}."
    else:
        end = asked.span.end or 0
        why = f": {asked.span.ended_by}" if asked.span.ended_by else ""
        later = next((s.begin for s in spans if s.begin > asked.until), None)
        again = "" if later is None else f" It was active again from {words.at(later)} on."
        sentence = f"Rule {name} was not active after {words.at(end)}{why}.{again}"
        if asked.since <= end:
            sentence += f" Ask for the time before with `--at {words.option(end - end % 1_000)}`."
    return Rung("active", False, sentence, {"active": figures})


def _seen(asked: Asked, fired: bool) -> Rung:
    """Whether the engine has come so far."""
    watermark, words = asked.evidence.watermark, asked.words
    behind = lateness_micros(asked.evidence.book).get(asked.rule.name, 0)
    figures = {"watermark": watermark, "lateness_micros": behind}
    if watermark is None:
        return Rung("seen", False, "Nothing has been seen yet: no bucket is stored.", figures)
    if fired or asked.until <= watermark - behind:
        late = f"; it runs {length(behind)} behind for late rows" if behind else ""
        said = f"All is seen up to {words.at(watermark - behind)}{late}."
        return Rung("seen", True, said, figures)
    late = f", which runs {length(behind)} behind for late rows" if behind else ""
    sentence = (
        f"Only what came up to {words.at(watermark - behind)} is seen by rule"
        f" {asked.rule.name}{late}; {words.dated(asked.until)} is later."
    )
    return Rung("seen", False, sentence, figures)


def check(evidence: Evidence, rule: str, key: Key) -> None:
    """Raise InputError for a rule that is not there, or other columns than those of its key."""
    rules = evidence.book.rules
    if rule not in rules:
        hint = did_you_mean(rule, rules)
        raise InputError(
            [Problem("unknown-rule", f"unknown rule {rule!r}", word_place(rule), hint)]
        )
    names = rules[rule].pattern.key_names
    if {*names} != key.keys():
        given = ", ".join(key) or "none"
        wanted = ", ".join(f"{name}=.." for name in names) or "none"
        message = f"the key of {rule} has {counted(len(names), 'column')}, given: {given}"
        if not names:
            message = f"{rule} has no `per`, and so no key; given: {given}"
        raise InputError([Problem("key", message, word_place("--key"), f"write {wanted}")])
