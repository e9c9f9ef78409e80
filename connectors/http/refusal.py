"""The refusal of a request: a status, and `{"error": {..}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from tidegate.engine.core.text.printable import shortened
from tidegate.rules.errors import Problem

TEXT_MAX = 500  # characters of a text that may hold what a client sent
JSON = "application/json"


@dataclass(eq=False)
class Refusal(Exception):
    """A refused request. `path`: of the wrong value in its body. `problems`: all that is wrong.
    `close`: the connection is closed, and the rest of the request is not read."""

    status: int
    code: str
    message: str
    hint: str = ""
    path: str = ""
    problems: Sequence[Problem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False

    @property
    def all_headers(self) -> dict[str, str]:
        return {**self.headers, **({"connection": "close"} if self.close else {})}


def refused(refusal: Refusal) -> Response:
    error: dict[str, Any] = _told(refusal.code, refusal.message, refusal.hint, refusal.path)
    if refusal.problems:
        error["problems"] = [
            _told(p.code, p.message, p.hint, p.place.path) for p in refusal.problems
        ]
    return answer({"error": error}, refusal.status, refusal.all_headers)


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer as JSON. Half a surrogate pair, which a client may have sent, is escaped."""
    return Response(json.dumps(value).encode(), status, headers, JSON)


def _told(code: str, message: str, hint: str, path: str) -> dict[str, str]:
    texts = {"message": message, "hint": hint, "path": path}
    return {"code": code, **{name: shortened(text, TEXT_MAX) for name, text in texts.items()}}
