"""Builds what `explain` says of a rulebook: `engine.explain.model.Explained`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tidegate.engine.core.text.layout import counted
from tidegate.engine.explain.graph import Nodes
from tidegate.engine.explain.model import WINDOW, Damps, Explained, Rule, Warned
from tidegate.engine.explain.scripts import Scripts
from tidegate.engine.explain.sentences import Sentences
from tidegate.rules.algebra.bound import Bound, Bounds, own_context
from tidegate.rules.algebra.detector_form import detected
from tidegate.rules.algebra.named_parts import asked_parts
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.analysis.triggers import Triggers
from tidegate.rules.errors import Problem
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.business_days import YEARS
from tidegate.rules.expressions.durations import format_duration, length
from tidegate.rules.expressions.formatter import format_expression, format_written
from tidegate.rules.form.texts import WEEKDAYS
from tidegate.rules.model import ClockEvent, Context, Rulebook
from tidegate.rules.model import Rule as Written


def build(book: Rulebook, only: str | None = None) -> Explained:
    """Everything, or what belongs to the rule or script named `only`. To a rule belong its nodes,
    the nodes of rules that it uses as events, and the triggering edges from it and to it."""
    scripts = Scripts(book, only)
    if only is not None and only in book.scripts:
        told = _warned(book, [*_of_script(book, only), *scripts.warnings])
        return Explained(book.name, (), (), (), 0, (), told, tuple(scripts.scripts))
    found = Bounds(book.rules)
    graph = Nodes(book, found.used)
    triggers = Triggers(book)
    nodes, loops = graph.nodes(), [loop.rules for loop in triggers.loops()]
    edges, more = triggers.edges(only)
    chosen = [rule for rule in book.rules.values() if only in (None, rule.name)]
    bounds = {
        rule.name: found.in_contexts(rule, {own_context(rule.pattern), *Context}) for rule in chosen
    }
    rules = [_rule(rule, book, graph, bounds[rule.name], triggers) for rule in chosen]
    warnings = [*book.warnings, *_never_forget(chosen, bounds, graph), *scripts.warnings]
    if only is not None:
        kept = graph.below(rules[0].root)
        nodes = tuple(node for node in nodes if node.id in kept)
        loops = [loop for loop in loops if only in loop]
        warnings = [w for w in warnings if w.place.path.split(".")[:2] == ["rules", only]]
    return Explained(
        book.name,
        tuple(rules),
        nodes,
        edges,
        more,
        tuple(loops),
        _warned(book, warnings),
        tuple(scripts.scripts),
        book.settings.detect,
    )


def _warned(book: Rulebook, warnings: Iterable[Problem]) -> tuple[Warned, ...]:
    own = ("<text>", book.file)
    return tuple(
        Warned(
            w.code,
            "" if w.place.file in own else w.place.file,
            w.place.line,
            w.place.column,
            w.place.path,
            w.message,
            w.hint,
        )
        for w in warnings
    )


def _of_script(book: Rulebook, name: str) -> Iterator[Problem]:
    """The warnings of a script: in its entry in the rulebook, and in its own file, if any."""
    file = book.scripts[name].program.inputs[0].place.file
    for each in book.warnings:
        own_file = file != book.file and each.place.file == file
        if own_file or each.place.path.split(".")[:2] == ["scripts", name]:
            yield each


def _rule(
    rule: Written,
    book: Rulebook,
    graph: Nodes,
    bounds: Mapping[Context, Bound],
    triggers: Triggers,
) -> Rule:
    own = rule.pattern.context
    stores = {own: bounds[own_context(rule.pattern)]}
    if not isinstance(rule.pattern.on, w.Window):
        stores |= {context: bounds[context] for context in Context if context is not own}
    if graph.repeated(rule.name):
        stores = {context: replace(b, forgets_micros=None) for context, b in stores.items()}
    said = Sentences(rule, book.rules)
    return Rule(
        rule.name,
        said.all(stores[own]),
        format_written(rule.pattern.on),
        format_expression(detected(rule.pattern, book.rules)),
        _context(rule),
        rule.pattern.key_names,
        rule.enabled,
        graph.roots[rule.name],
        rule.name in graph.searched,
        {str(context): said.choice(context) for context in stores},
        {str(context): found for context, found in stores.items()},
        tuple(dict.fromkeys(_timers(rule.pattern.on, book))),
        tuple(sorted(triggers.written[rule.name])),
        tuple(damps(rule, book)),
        rule.about.description,
        rule.about.severity and str(rule.about.severity),
        rule.about.labels,
        rule.pattern.where.text if rule.pattern.where else None,
        tuple(_asked(rule, book)),
        next(map(_counted_by, x.business_calendars(rule.pattern.on)), None),
        None if not rule.pattern.where else "scan" if rule.name in graph.scanned else "search",
        tuple(sorted(triggers.written[rule.name].keys() & {e.table for e in table_events(book)})),
        graph.rest.get(rule.name),
    )


def _context(rule: Written) -> str:
    """The name of what chooses: a context, or a window."""
    if isinstance(rule.pattern.on, w.Window):
        return WINDOW
    return rule.pattern.context_word or str(rule.pattern.context)


def _asked(rule: Written, book: Rulebook) -> Iterator[str]:
    """The parts of whose matches the rule's `where` is asked."""
    if where := rule.pattern.where:
        on = detected(rule.pattern, book.rules)
        yield from map(format_expression, asked_parts(on, where.tree, frozenset(book.rules)))


def _counted_by(calendar: x.BusinessCalendar) -> str:
    """`mon, tue, but for 2026-12-24, holidays of DE-BE (from 1960 to 2099)`."""
    excluded = [*calendar.excluded, *(f"holidays of {region}" for region in calendar.holidays)]
    but = f", but for {', '.join(excluded)}" if excluded else ""
    days = ", ".join(WEEKDAYS[day] for day in calendar.days)
    return f"{days}{but} (from {YEARS[0]} to {YEARS[-1]})"


def _timers(on: x.Expression, book: Rulebook) -> Iterator[str]:
    """What makes a rule act without an event, such as `5 min after each `opened``."""
    for node in on.walk():
        match node:
            case x.Clock() | x.Cron():
                yield format_written(node)
            case x.Name(name=name) if isinstance(event := book.events.get(name), ClockEvent):
                yield f"{name}: {format_written(event.expression)} ({event.timezone})"
            case x.Plus(base=base, duration=duration):
                yield f"{format_duration(duration)} after each `{format_written(base)}`"
            case x.Seq(first=opener, then=x.Own(duration=duration)):
                yield f"{format_duration(duration)} after each `{format_written(opener)}`"
            case x.Periodic(opener=opener) | x.PeriodicStar(opener=opener):
                period = format_duration(node.period)
                yield f"every {period} after each `{format_written(opener)}`"
            case w.Tumbling(length=duration) | w.Sliding(every=duration):
                yield f"each {format_duration(duration)}" + _midnights(duration, book)
            case w.Session(part=part, gap=duration) | w.Crossing(part=part, length=duration):
                yield f"{format_duration(duration)} after each `{format_written(part)}`"
            case w.Holding(begun=begun, ended=ended, length=length, keep=keep):
                first = format_written(begun)
                yield f"{format_duration(length)} after the first `{first}` that nothing ends"
                if keep.micros:
                    last = format_written(ended)
                    yield f"{format_duration(keep)} after each `{last}` that may end what has fired"
        match node:
            case (
                x.Not(opener=opener, closer=x.Own(duration=duration))
                | x.AperiodicStar(opener=opener, closer=x.Own(duration=duration))
                | x.Periodic(opener=opener, closer=x.Own(duration=duration))
                | x.PeriodicStar(opener=opener, closer=x.Own(duration=duration))
            ):
                yield f"{format_duration(duration)} after each `{format_written(opener)}`"


def _midnights(duration: x.Duration, book: Rulebook) -> str:
    return f", at local midnight ({book.timezone})" if w.calendar(duration) else ""


def _never_forget(
    rules: Iterable[Written], bounds: Mapping[str, Mapping[Context, Bound]], graph: Nodes
) -> Iterator[Problem]:
    """Warnings of keyed rules that keep something of every key for ever (G13)."""
    for rule in rules:
        found = bounds[rule.name][own_context(rule.pattern)]
        if repeated := graph.repeated(rule.name):
            message = (
                f"{rule.name} never forgets: it keeps every key it has seen, to tell them apart"
            )
            names = " and ".join(f"`{name}`" for name in repeated)
            hint = f"it repeats {names} for each of them: use events that have the key"
            yield Problem("never-forgets", message, rule.place, hint)
        elif rule.pattern.key_names and found.exists and not found.forgets:
            message = f"{rule.name} never forgets: it keeps something of every key it has seen"
            yield Problem("never-forgets", message, rule.place, "; ".join(found.advice))


def damps(rule: Written, book: Rulebook) -> Iterator[Damps]:
    """The damping of a rule, in the order in which it judges a firing."""
    if rule.damping is None:
        return
    levels, dedupe = rule.damping.hysteresis, rule.damping.dedupe
    cooldown, rate = rule.damping.cooldown_micros, rule.damping.throttle
    if levels is not None:
        said = f"fire {levels.fire.text.strip()}; rearm {levels.rearm.text.strip()}"
        yield Damps(
            "hysteresis", said, 0, None, "a mark per key that has fired, until it is rearmed"
        )
    if dedupe is not None:
        most, within = book.settings.dedupe_keys_max, length(dedupe.within_micros)
        why = f"an instant of each firing, for {within}, at most {most:,} (dedupe_keys_max)"
        said = f"by {', '.join(dedupe.by)} within {within}"
        yield Damps("dedupe", said, None, dedupe.within_micros, why)
    if cooldown is not None:
        why = f"1 instant per key, for {length(cooldown)}"
        yield Damps("cooldown", length(cooldown), 1, cooldown, why)
    if rate is not None:
        within = length(rate.within_micros)
        why = f"at most {counted(rate.count, 'instant')} per key, for {within}"
        said = f"{rate.count:,} per {within}"
        yield Damps("throttle", said, rate.count, rate.within_micros, why)
