"""A story for a terminal: subject first, a part of the story a paragraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.layout import counted, cut, listed, pairs_text, wrapped
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.why.model import Condition, Constituent, Entry, Link, Story
from tidegate.engine.replay.why.times import VALUE_MAX, Times, key_words, took
from tidegate.engine.replay.why_not.words import lasting

ID_DIGITS = 8
CONSTITUENTS_MAX = 20
LINKS_MAX = 10
_GONE = "(gone: retention has taken it)"
_ASKED = {  # where the versions that it saw are not recorded
    "immediate": "of each table as it was at the end of the firing",
    "deferred": "of the tables as its bucket pinned them",
    "detached": "after the bucket, of the tables as they were then",
}


def lines(story: Story, width: int) -> Iterator[str]:
    """The lines of `tidegate why`; none is wider than `width`."""
    times = Times(story)
    yield from wrapped(headline(story, times), width)
    if story.sentence is not None:
        yield from wrapped(story.sentence, width, "  ")
    for said in story.sentences:
        yield from wrapped(said, width, "  ")
    if story.edited is not None:
        yield from wrapped(edited(story), width, "  ")
    yield ""
    yield from wrapped(f"It is made of {counted(len(story.constituents), 'occurrence')}:", width)
    for one in story.constituents[:CONSTITUENTS_MAX]:
        yield from wrapped(constituent(one, times), width, "  ")
        if one.row:
            yield cut(f"    {pairs_text(_shortened(one.row))}", width)
    if len(story.constituents) > CONSTITUENTS_MAX:
        yield f"  .. and {len(story.constituents) - CONSTITUENTS_MAX:,} more: --format json"
    for sentence in (*_condition(story.condition), *fate(story)):
        yield ""
        yield from wrapped(sentence, width)
    for entry in story.entries:
        for sentence in entry_sentences(entry, times):
            more = sentence.startswith(" ")
            yield from wrapped(sentence.strip(), width, "    " if more else "  ")
    yield from _links("It came of", story.causes, width)
    yield from _links("Of it came", story.effects, width)
    for note in (*story.notes, *gone_sentences(story)):
        yield ""
        yield from wrapped(note, width)


def headline(story: Story, times: Times) -> str:
    """`Firing 5f3a0c12 of rule pay for account 7 was detected at 09:10:00 ..`"""
    of_key = f" for {key_words(story.key)}" if story.key else ""
    span = f" It began at {times.at(story.start)}." if story.start != story.end else ""
    return (
        f"Firing {story.firing_id} of rule {story.rule}{of_key} ended at {times.at(story.end)}"
        f" ({times.day}, {story.timezone}).{span} Bucket {story.bucket} detected it, at"
        f" {times.clock(story.detected_at)}."
    )


def edited(story: Story) -> str:
    """What the rule says now."""
    if story.edited is None:
        return ""
    then = f"That was version {story.rulebook_version} of the rulebook."
    if story.edited.sentence is None:
        return f"{then} Version {story.edited.version} has no such rule any more."
    if story.edited.sentence == story.sentence:
        what = "in what this sentence leaves out, or in its event types"
        return f"{then} The rule was edited since: version {story.edited.version} differs {what}."
    return (
        f"{then} The rule was edited since. Version {story.edited.version}: {story.edited.sentence}"
    )


def constituent(one: Constituent, times: Times) -> str:
    """`order at 09:00:00: version 7 of orders, in bucket 3; it waited 10 min.`"""
    source = "no row"
    if one.table is not None:
        source = f"version {one.version} of {one.table}"
    elif one.signal is not None:
        source = f"signal {one.signal}"
        if one.namespace == "engine":
            source = f"a signal of firing {one.signal[:ID_DIGITS]}"
    elif one.script is not None:
        source = f"emitted by script {one.script}"
    elif one.event == "tick" or (one.version is None and not one.row):
        source = "a tick or clock"
    elif one.version is not None:
        source = f"version {one.version} of its table"
    bucket = f"in bucket {one.bucket}" if one.bucket is not None else "its bucket is forgotten"
    waited = f"; it waited {lasting(round(one.waited_seconds * 1e6))}" if one.waited_seconds else ""
    return f"{one.event} at {times.at(one.time)}: {source}, {bucket}{waited}"


def _condition(condition: Condition) -> Iterator[str]:
    if condition.text is not None:
        yield condition_sentence(condition)


def condition_sentence(condition: Condition) -> str:
    """``Its condition `sum(amount) > 9` held: sum(amount) is 12.``"""
    outcome = {"dead": "could not be asked", "none": "has no answer yet"}
    said = outcome.get(condition.outcome, condition.outcome)
    said = "did not hold" if said == "failed" else said
    text = " ".join(condition.text.split()) if condition.text else ""
    sentence = f"Its condition `{text}` {said}"
    if condition.values:
        values = ", ".join(f"{n} is {_value(v)}" for n, v in condition.values.items())
        sentence += f": {values}"
    if condition.query:
        seen = ", ".join(f"version {v} of {name}" for name, v in condition.versions.items())
        asked = _ASKED.get(condition.coupling or "", "")
        sentence += f"; it saw {seen}" if seen else f"; it was asked {asked}"
    if condition.asked_again:
        return f"{sentence}. {condition.asked_again}"
    if condition.in_log:
        tables = listed(f"`{name}`" for name in condition.in_log)
        said = f"The version of {tables} stands in the table's log: --spark finds it"
        if len(condition.in_log) > 1:
            said = f"The versions of {tables} stand in the tables' logs: --spark finds them"
        sentence += f". {said}"
    return f"{sentence}."


def fate(story: Story) -> Iterator[str]:
    """What became of it, but for its entries."""
    if story.damped is not None:
        yield f"It was dropped by its rule's {story.damped}, so none of its actions ran."
    elif story.condition.outcome == "failed":
        yield "So none of its actions ran."
    elif "entries" in story.gone:
        yield f"What its actions did is not there any more {_GONE}."
    elif story.dry:
        yield "Its rule is dry (mode: dry), so none of its actions ran."
    elif not story.entries:
        yield "Its rule has no actions: it only detects."
    else:
        yield f"{counted(len(story.entries), 'entry', 'entries')} came of it:"


def entry_sentences(entry: Entry, times: Times) -> Iterator[str]:
    """What an entry did, and how far it came."""
    whose = " (the alternative)" if entry.alternative else ""
    yield f"#{entry.number}{whose} {entry.does}: {entry.state}{_tries(entry)}{_span(entry, times)}"
    made = []
    if entry.version is not None:
        rows = "" if entry.rows is None else f", which wrote {counted(entry.rows, 'row')}"
        made.append(f"Its commit is version {entry.version} of {entry.table}{rows}")
    if entry.signals:
        made.append(f"It raised {counted(entry.signals, 'signal')} for this firing")
    if entry.firings > 1:
        made.append(f"It was for {entry.firings:,} firings of the bucket at once")
    if entry.in_place_of is not None:
        made.append(f"It took the place of #{entry.in_place_of}")
    if entry.replaced_by is not None:
        made.append(f"#{entry.replaced_by} took its place")
    for asked in entry.asked:
        by = asked.by or "somebody"
        said = f", answered: {asked.answer}" if asked.answer else ""
        made.append(f"{by} asked for {asked.kind} at {times.clock(asked.at)}{said}")
    if entry.error:
        made.append(f"Its last error: {entry.error.rstrip('.')}")
    if entry.commands:
        made.append(f"What gets past it: {' or '.join(f'`{one}`' for one in entry.commands)}")
    if made:
        yield "    " + ". ".join(made) + "."


def _tries(entry: Entry) -> str:
    if entry.attempts > 1 or (entry.attempts and entry.state != "done"):
        return f" after {counted(entry.attempts, 'attempt')}"
    return ""


def _span(entry: Entry, times: Times) -> str:
    if entry.begun_at is None:
        waits = entry.next_attempt_at
        return f"; it is due at {times.clock(waits)}" if waits else "; it has not begun"
    said = f"; begun at {times.clock(entry.begun_at)}"
    if entry.settled_at is not None and entry.settled_at > entry.begun_at:
        said += f", settled {took(entry.settled_at - entry.begun_at)} later"
    if entry.next_attempt_at is not None:
        said += f", tried again at {times.clock(entry.next_attempt_at)}"
    return said


def _links(title: str, links: Sequence[Link], width: int) -> Iterator[str]:
    if not links:
        return
    yield ""
    yield f"{title} {counted(len(links), 'firing')}:"
    for link in links[:LINKS_MAX]:
        yield from wrapped(link_words(link), width, "  ")
    if len(links) > LINKS_MAX:
        yield f"  .. and {len(links) - LINKS_MAX:,} more: --format json"


def link_words(link: Link) -> str:
    """`firing 5f3a0c12 of rule pay, by orders version 7`."""
    of_rule = f" of rule {link.rule}" if link.rule else f" {_GONE}"
    if link.rulebook is not None:
        of_rule += f" of rulebook {link.rulebook}"
    return f"firing {link.firing_id[:ID_DIGITS]}{of_rule}, by {link.via}"


def gone_sentences(story: Story) -> Iterator[str]:
    """What retention has taken."""
    buckets = sum(1 for path in story.gone if path.endswith(".bucket"))
    if buckets:
        some = counted(buckets, "occurrence")
        yield f"The bucket in which {some} arrived is forgotten (history_retention_days)."
    lost = sum(1 for path in story.gone if path.startswith("causes."))
    if lost:
        some = counted(lost, "firing")
        yield f"Retention has taken {some} that it came of (firings_retention_days)."


def _shortened(row: Any) -> dict[str, str]:
    return {name: shortened(shown(value), VALUE_MAX) for name, value in row.items()}


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value[:5])
    said = shortened(shown(value), VALUE_MAX)
    return f"'{said}'" if isinstance(value, str) else "null" if value is None else said
