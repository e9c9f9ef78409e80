"""What the scripts of a rulebook emit over a whole history in memory, for `tidegate.detect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.engine.detector.stacking import both
from tidegate.engine.script.book import in_order, script_of, sources_of
from tidegate.engine.script.run import Runner
from tidegate.engine.scriptinputs import as_declared
from tidegate.engine.values import Batch, Carried
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.eventscript.tree import Input
from tidegate.rules.eventscript.types import Structure
from tidegate.rules.model import Rulebook, Script, ScriptEvent, ScriptInput


def emitted(
    book: Rulebook, batches: Mapping[str, Batch], activation: int, last: int
) -> dict[str, Batch]:
    """The emissions of all enabled scripts by event type, from occurrences by event type. Scripts
    start at `activation`; after `last` each instance's first pending `elapse` runs out, as in
    `simulate`. Raises `InputError` where occurrences do not fit, or a script takes a rule."""
    known = dict(batches)
    found: dict[str, Batch] = {}
    for script in in_order(book):
        runner = Runner(script_of(book, script), activation, sources_of(book, script))
        inputs = {
            each.name: _taken(each, taken, known[taken.event])
            for each in script.program.inputs
            for taken in [_event(book, script, each.name)]
            if taken.event in known
        }
        end = max([last, *(int(batch.time[-1]) for batch in inputs.values())])
        step = runner.step(Carried(), inputs, end)
        parts = [step.emissions, *([] if step.parked else [runner.finish(step.carried)])]
        for part in parts:
            for output, event in script.outputs.items():
                batch = part.batch(output, event)
                if batch is not None:
                    found[event] = both(found[event], batch) if event in found else batch
        known |= found
    events = {name: e for name, e in book.events.items() if isinstance(e, ScriptEvent)}
    return {event: as_declared(batch, events[event]) for event, batch in found.items()}


def _event(book: Rulebook, script: Script, name: str) -> ScriptInput:
    taken = script.inputs[name]
    if taken.event in book.rules:
        message = f"the script {script.name} takes what rule {taken.event} detects"
        hint = "only `run` can do that: take the event types that the rule takes"
        raise InputError([Problem("unbuilt", message, script.place, hint)])
    return taken


def _taken(read: Input, taken: ScriptInput, batch: Batch) -> Batch:
    """The occurrences of an input, with the columns that it reads."""
    if isinstance(read.type, Structure):
        wanted = {name for name, _ in read.type.fields}
    else:
        wanted = {taken.value or "value"}
    wanted |= {*taken.order_by}
    names = [name for name in batch.table.column_names if name in wanted]
    return replace(batch, table=batch.table.select(names))
