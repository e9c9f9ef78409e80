"""The description of the inbox in OpenAPI 3.1, from the signals of its rulebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from tidegate.connectors.http.body import id_name
from tidegate.engine.control.signals import ID_CHARACTERS_MAX
from tidegate.engine.core.signing import SIGNATURE, signature
from tidegate.engine.core.types.spark import arrow_type
from tidegate.rules.model import Rulebook, Settings, SignalEvent

Json = dict[str, Any]
_REFUSALS = {
    "400": "the body is wrong: every field with its path",
    "401": "no known key",
    "403": "the key may not raise this signal",
    "404": "no such signal",
    "408": "the body came too slowly",
    "409": "an id stands for another event or other fields",
    "413": "the body or the array is too large",
    "415": "no plain JSON",
    "429": "too many requests: Retry-After",
    "503": "the store cannot be written now: Retry-After",
}
_STREAM_REFUSALS = {
    "400": "no position, or an event that no store keeps",
    "401": "no known key",
    "403": "the key may not wait for this",
    "404": "no such rule or signal",
    "410": "what came after the position may have been forgotten",
    "503": "too many wait, or the store cannot be read: Retry-After",
}


def openapi(books: Mapping[str, Rulebook], settings: Settings, keys: Sequence[object]) -> Json:
    """The description, with a path for each signal. `keys`: with any, requests are
    authenticated."""
    signals: dict[str, list[SignalEvent]] = {}
    for event in (event for book in books.values() for event in book.events.values()):
        if isinstance(event, SignalEvent):
            signals.setdefault(event.name, []).append(event)
    paths = {f"/signals/{event}": {"post": _post(event, settings)} for event in signals}
    text = {"type": "array", "items": {"type": "string"}}
    schemes: Json = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "signature": _signature(),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"signals of {', '.join(books)}", "version": version("tidegate")},
        **({"security": [{name: []} for name in schemes]} if keys else {}),
        "paths": {**paths, "/events/stream": {"get": _stream()}},
        "components": {
            "schemas": {
                "Raised": _object({"ids": text, "rulebooks": text}),
                "Refused": _refused(),
                **{f"signal.{event}": _signals(declared) for event, declared in signals.items()},
            },
            **({"securitySchemes": schemes} if keys else {}),
        },
    }


def _signature() -> Json:
    """The scheme of signatures, with an example to try a client's code on."""
    secret, at, method = "0123456789abcdef", 1_772_442_000, "POST"
    target, body = "/signals/reported?from=till", '{"id": "report-1"}'
    said = "t=SECONDS,v2=HEX; HEX is HMAC-SHA256 by the key's secret over the same SECONDS, the "
    said += "method, the path with its query as they stand in the request, and the body, with a "
    said += "line break (\\n) after each of the first three. A signed signal needs an id."
    example = {"secret": secret, "t": at, "method": method, "target": target, "body": body}
    value = signature(secret.encode(), at, method, target, body.encode())
    return {
        "type": "apiKey",
        "in": "header",
        "name": SIGNATURE,
        "description": said,
        "x-example": {**example, SIGNATURE: value},
    }


def _post(event: str, settings: Settings) -> Json:
    one = {"$ref": f"#/components/schemas/signal.{event}"}
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": settings.inbox_batch_max}
    return {
        "operationId": f"raise_{event}",
        "summary": f"Raise {event}: one, or all of an array at one instant, durably",
        "requestBody": {"required": True, "content": _json({"oneOf": [one, many]})},
        "responses": {
            "202": _says("in the store", _json({"$ref": "#/components/schemas/Raised"})),
            **_refusals(_REFUSALS),
        },
    }


def _stream() -> Json:
    text = {"schema": {"type": "string"}}
    more = [("rulebook", "query"), ("since", "query"), ("Last-Event-ID", "header")]
    names = [("name", "query", True), *((name, where, False) for name, where in more)]
    return {
        "operationId": "listen",
        "summary": "Wait for what a rule detects, or for a signal: server-sent events",
        "parameters": [
            {"name": n, "in": where, "required": must, **text} for n, where, must in names
        ],
        "responses": {
            "200": _says("events, until one side ends", {"text/event-stream": text}),
            **_refusals(_STREAM_REFUSALS),
        },
    }


def _signals(declared: Sequence[SignalEvent]) -> Json:
    """The schema of a signal that fits all its declarations."""
    name = id_name(declared)
    forms: list[Json] = []
    for event in declared:
        if (form := _signal(event, name)) not in forms:
            forms.append(form)
    return forms[0] if len(forms) == 1 else {"allOf": forms}


def _signal(event: SignalEvent, id_name: str) -> Json:
    signal_id = {"type": "string", "minLength": 1, "maxLength": ID_CHARACTERS_MAX}
    fields = {name: _schema(arrow_type(ddl)) for name, ddl in event.fields.items()}
    own = {"description": "the same id and fields again are one occurrence", **signal_id}
    made = _object({**fields, id_name: own}, [*event.fields])
    return {**made, "additionalProperties": False}


def _schema(kind: pa.DataType) -> Json:
    """The schema of a value of a type, or null."""
    of = pa.types
    if of.is_boolean(kind):
        return _or_null("boolean")
    if of.is_integer(kind):
        bound, bits = 1 << (kind.bit_width - 1), kind.bit_width
        form = {"format": f"int{bits}"} if bits in (32, 64) else {}
        return _or_null("integer", minimum=-bound, maximum=bound - 1, **form)
    if of.is_floating(kind):
        return _or_null("number", "string")
    if of.is_decimal(kind):
        said = f"{kind.precision} digits, {kind.scale} of them behind the point"
        return _or_null("number", "string", description=said)
    if of.is_timestamp(kind):
        zone = "" if kind.tz is None else ", UTC"
        return _or_null("string", description=f"ISO 8601; without an offset{zone}")
    if of.is_list(kind):
        return _or_null("array", items=_schema(kind.value_type))
    if of.is_map(kind):
        return _or_null("object", "array", additionalProperties=_schema(kind.item_type))
    if of.is_struct(kind):
        fields = {field.name: _schema(field.type) for field in kind}
        return _or_null("object", properties=fields, additionalProperties=False)
    if of.is_date(kind):
        return _or_null("string", format="date")
    if of.is_binary(kind):
        return _or_null("string", contentEncoding="base64")
    return _or_null("string") if of.is_string(kind) else {}


def _or_null(*types: str, **more: Any) -> Json:
    return {"type": [*types, "null"], **more}


def _object(properties: Json, required: Sequence[str] | None = None) -> Json:
    must = list(properties) if required is None else list(required)
    return {"type": "object", "properties": properties, "required": must}


def _refused() -> Json:
    texts: Json = {key: {"type": "string"} for key in ("code", "message", "hint", "path")}
    problems = {"type": "array", "items": _object(texts)}
    return _object({"error": _object({**texts, "problems": problems}, [*texts])})


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _says(what: str, content: Json) -> Json:
    return {"description": what, "content": content}


def _refusals(said: Mapping[str, str]) -> Json:
    content = _json({"$ref": "#/components/schemas/Refused"})
    return {code: _says(what, content) for code, what in said.items()}
