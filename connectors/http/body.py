"""Reads the signals of one request from its body, which anybody may have written."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from tidegate.connectors.http.refusal import Refusal
from tidegate.engine.control.signals import check_id, of_rulebook
from tidegate.engine.core.text import json_text
from tidegate.engine.core.types.fields import PROBLEMS_MAX, check_fields
from tidegate.engine.store.posts import Posted
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.model import SignalEvent

_SERIAL_BITS = 46
_random = random.Random()  # noqa: S311, seeded by the system: ids are unique, not secret

Declared = Mapping[str, SignalEvent]
"""The declarations of one signal, by rulebook."""


def id_name(declared: Iterable[SignalEvent]) -> str:
    """The name of a signal's id in its JSON object: `id`, or `$id` where `id` is a field."""
    return "$id" if any("id" in event.fields for event in declared) else "id"


def read_signals(declared: Declared, body: bytes, batch_max: int, *, ids_needed: bool) -> Posted:
    """The signals of a body, in its order: one JSON object, or an array of them. Each must fit all
    declarations. Raises Refusal with every field that is wrong, up to PROBLEMS_MAX."""
    items, single = _items(_parse(body), batch_max)
    name = id_name(declared.values())
    alike = _alike(declared)
    event = next(iter(declared.values()))
    ids: list[str] = []
    texts: list[list[str]] = [[] for _ in alike]
    problems: list[Problem] = []
    drawn = new_ids(len(items))
    given = False
    for number, item in enumerate(items):
        try:
            signal_id = _id_of(event, name, item, ids_needed=ids_needed)
            fitted = _fitted(declared, alike, item)
        except InputError as error:
            problems += _placed(error, event, None if single else number)
            if len(problems) >= PROBLEMS_MAX:
                break
            continue
        given = given or signal_id is not None
        ids.append(next(drawn) if signal_id is None else signal_id)
        for some, fields in zip(texts, fitted, strict=True):
            some.append(json_text.canonical(fields))
    if problems:
        first = problems[0]
        raise Refusal(
            400, first.code, first.message, first.hint, first.place.path, problems[:PROBLEMS_MAX]
        )
    of_books = {book: some for books, some in zip(alike, texts, strict=True) for book in books}
    return Posted(event.name, ids, of_books, fresh=not given)


def new_ids(count: int) -> Iterator[str]:
    """New ids (UUID, version 7), ascending: they are neighbours in the store's index."""
    millis = f"{time.time_ns() // 1_000_000:012x}"
    head = f"{millis[:8]}-{millis[8:]}-7{_random.getrandbits(12):03x}"
    low, serial = _random.getrandbits(14) | 0x8000, _random.getrandbits(_SERIAL_BITS)
    return (f"{head}-{low:04x}-{serial + n:012x}" for n in range(count))


def _parse(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _bad_json(f"byte {error.start} is not UTF-8") from None
    try:
        return json.loads(
            text, parse_float=_decimal, parse_constant=_no_number, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _bad_json(f"{where}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise _bad_json("it is nested too deeply") from None
    except ValueError as error:
        raise _bad_json(str(error).partition(";")[0]) from None  # Python's hint is not ours


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the number {text[:100]} has an exponent without bounds") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = sorted(name for name, _ in pairs)
        twice = next(name for name, other in pairwise(names) if name == other)
        raise ValueError(f"an object names {twice[:100]!r} twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f'{text} is not JSON; in a field, write "{text}"')


def _bad_json(said: str) -> Refusal:
    hint = 'send an object such as {"field": 1}, or an array of objects'
    return Refusal(400, "bad-json", f"the body is not JSON: {said}", hint)


def _items(value: Any, batch_max: int) -> tuple[list[Any], bool]:
    """The objects of a body, and whether it is a single object."""
    if isinstance(value, dict):
        return [value], True
    if not isinstance(value, list):
        raise _bad_json("it is neither an object nor an array of objects")
    if not value:
        hint = "send at least one object"
        raise Refusal(400, "no-signals", "the array is empty", hint)
    if len(value) > batch_max:
        message = f"the array holds {len(value):,} signals, allowed are {batch_max:,}"
        hint = "send several requests (inbox_batch_max)"
        raise Refusal(413, "too-many-signals", message, hint)
    return value, False


def _alike(declared: Declared) -> list[list[str]]:
    """The rulebooks, those with the same declaration together: a body is checked once for them."""
    found: dict[frozenset[tuple[str, str]], list[str]] = {}
    for book, event in declared.items():
        found.setdefault(frozenset(event.fields.items()), []).append(book)
    return [*found.values()]


def _id_of(event: SignalEvent, id_name: str, item: Any, *, ids_needed: bool) -> str | None:
    """The id that the client gives; it is removed from the item. Raises InputError."""
    if not isinstance(item, dict):
        raise _wrong(event, "", "signal-object", "a signal is an object of fields")
    signal_id: str | None = item.pop(id_name, None)
    if signal_id is not None:
        check_id(event, signal_id, id_name)
    elif ids_needed:
        hint = "without one, who sees the request could send it again"
        message = f"a signed signal needs an id: {id_name}"
        raise _wrong(event, id_name, "signal-id", message, hint)
    return signal_id


def _fitted(
    declared: Declared, alike: Sequence[list[str]], item: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The fields as the store takes them, for each group of rulebooks. Raises InputError with all
    problems."""
    fitted: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for books in alike:
        try:
            fitted.append(check_fields(declared[books[0]], item))
        except InputError as error:
            problems += of_rulebook(error, ", ".join(books), several=len(alike) > 1)
    if problems:
        raise InputError(problems)
    return fitted


def _wrong(event: SignalEvent, path: str, code: str, message: str, hint: str = "") -> InputError:
    return InputError([Problem(code, message, Place(path=f"{event.name}.{path}"), hint)])


def _placed(error: InputError, event: SignalEvent, number: int | None) -> Iterator[Problem]:
    """The problems with their paths in the body: `[2].amount`."""
    for problem in error.problems:
        path = problem.place.path.removeprefix(event.name).removeprefix(".")
        if number is not None:
            path = f"[{number}].{path}".removesuffix(".")
        yield replace(problem, place=Place(path=path))
