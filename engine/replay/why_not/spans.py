"""When a rule was active, from what the store kept: buckets, the texts that made them, requests to
switch rules, and the rules that are stopped now.

Example: bucket 1 activates `quick` at 9:00. Bucket 7, after the watermark 9:05, carries out
`disable`, bucket 9 `enable`, asked for at 9:10: it was active up to 9:05, and from 9:10 on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate.engine.replay.why_not.evidence import ActiveSpan
from tidegate.engine.store.past import PastBucket, Standing
from tidegate.rules.model import Rulebook

Books = Mapping[int, Rulebook | None]
"""The rulebooks by version; None: its text is not kept, or cannot be read any more."""


@dataclass(slots=True)
class _Line:
    """The spans so far; the last one is open if it has no end."""

    spans: list[ActiveSpan] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return bool(self.spans) and self.spans[-1].end is None

    def begin(self, instant: int, before: str = "") -> None:
        if self.open and self.spans[-1].begin >= instant:
            self.spans.pop()
        self.end(instant - 1, "it began anew")
        self.spans.append(ActiveSpan(instant, before=before))

    def end(self, instant: int, why: str) -> None:
        if not self.open:
            return
        last = self.spans.pop()
        end = max(instant, last.begin - 1)  # it saw nothing at all: the span is empty
        self.spans.append(replace(last, end=end, ended_by=why))


def active_spans(
    rule: str,
    used: Collection[str],
    buckets: Sequence[PastBucket],
    books: Books,
    standing: Standing,
    behind: int,
) -> tuple[list[ActiveSpan], list[str]]:
    """The spans in which a rule was active, and what is not known of them. `used`: the rule, and
    the rules and scripts that it uses: where one of these is stopped, it is. `buckets`: the oldest
    first. `behind`: how far its watermark lies behind a bucket's."""
    line, gone = _Line(), list[str]()
    off: dict[str, str] = {}  # what is disabled, and why it stops the rule
    for bucket in buckets:
        first, before = bucket.watermark_before + 1 - behind, ""
        for control in bucket.switches:
            name = control.subject
            if name not in used:
                continue
            if control.kind == "disable":
                off[name] = _disabled(rule, name, control.asked_by)
            elif known := off.pop(name, ""):
                before = known
            elif name in bucket.activations:
                line.spans.clear()  # it had been disabled before the first of these buckets
                before = _disabled(rule, name)
            else:
                gone.append(f"`{name}` had been parked by a limit; since when is not kept")
        stopped = next(iter(off.values()), "") or _not_run(books.get(bucket.version), rule)
        if stopped:
            line.end(first - 1, stopped)
        elif rule in bucket.activations:
            line.begin(bucket.activations[rule], before)
        elif not line.open:
            line.begin(first)
    _stopped_now(line, rule, used, standing)
    began = standing.activations.get(rule)
    if began is not None and (not buckets or began > buckets[-1].watermark):
        line.begin(began)
    return line.spans, gone


def _stopped_now(line: _Line, rule: str, used: Collection[str], standing: Standing) -> None:
    """End the last span where the rule, or one that it uses, is parked or disabled now."""
    stops = [(standing.stops[name], name) for name in used if name in standing.stops]
    if not stops or not line.open:
        return
    stop, name = min(stops)
    why = stop.why if name == rule else f"{name}, which it uses: {stop.why}"
    end = stop.instant - 1
    begin = min(line.spans.pop().begin, standing.activations.get(rule, end), end)
    line.spans.append(ActiveSpan(begin, end, why))


def _disabled(rule: str, name: str, asked_by: str | None = None) -> str:
    by = f" (asked for by {asked_by})" if asked_by else ""
    what = "it" if name == rule else f"{name}, which it uses,"
    return f"{what} was disabled{by}"


def _not_run(book: Rulebook | None, rule: str) -> str:
    """Why a text of the rulebook does not run the rule; empty if it does."""
    if book is None:
        return ""
    known = book.rules.get(rule)
    if known is None:
        return "the rulebook that ran has no such rule"
    return "" if known.enabled else "the rulebook that ran says `enabled: false`"
