"""Webhooks: one POST for each firing, at least once. All tries have one idempotency key (G29)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.engine.act.executors import CurrentRules, Sealless, SomeFailedError, done
from tidegate.engine.act.kinds.payload import fields_of
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Outcome
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.policy import Answer, Post, Poster, secret_fault
from tidegate.engine.core.ports import Sink, SinkError
from tidegate.engine.core.statement import WebhookStatement
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Firings
from tidegate.rules.analysis.webhooks import filled, secrets_of

_ERRORS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Webhooks(Sealless):
    """Sends `webhook` entries. The store has only the name of a secret's variable. Each attempt
    reads the value from the `environment`."""

    sink: Sink
    poster: Poster
    environment: Mapping[str, str]

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        """Send the entry's firings. Raises SomeFailedError."""
        entry = waiting.entry
        ids: list[str] = firings.hex_ids().to_pylist()
        posts = self._posts(entry, firings, ids)
        failpoint("webhook.before")
        answers = self.poster.post(posts)
        failpoint("webhook.sent")
        if all(answer.error is None for answer in answers):
            return done(entry)
        raise _failed(ids, answers)

    def _posts(self, entry: Entry, firings: Firings, ids: Sequence[str]) -> list[Post]:
        """A request for each firing."""
        statement = entry.stating(WebhookStatement)
        values = self._secrets(ids, statement)
        headers = {name: filled(value, values) for name, value in statement.headers.items()}
        secret = values[statement.secret].encode() if statement.secret else None
        fields = python_rows(fields_of(entry, firings, self.sink))
        by_firing = {row.pop("firing_id"): row for row in fields}
        keys = python_rows(firings.firings.select(firings.key_names))
        ends = firings.firings["detected_at"].cast(pa.int64()).to_pylist()
        posts = []
        for n, one in enumerate(ids):
            said = {
                "firing_id": one,
                "rule": entry.rule,
                "detected_at": json_text.instant(ends[n]),
                "key": keys[n],
                **statement.about,
                **by_firing[one],
            }
            own = {
                "Idempotency-Key": f"{one}/{statement.action}",
                "Content-Type": "application/json",
            }
            posts.append(Post(statement.url, {**headers, **own}, _json(said), secret))
        return posts

    def _secrets(self, ids: Sequence[str], statement: WebhookStatement) -> Mapping[str, str]:
        """The values of the variables that a webhook names. Raises SomeFailedError."""
        for name in (names := secrets_of(statement.secret, statement.headers)):
            fault = secret_fault(name, self.environment, signs=name == statement.secret)
            if fault is not None:
                raise SomeFailedError(fault, never=ids)
        return {name: self.environment[name] for name in names}


def _json(fields: Mapping[str, Any]) -> bytes:
    try:
        return json_text.posted(fields)
    except TypeError as error:
        raise SinkError(f"[webhook-field] a field cannot be sent: {error}") from None


def _failed(ids: Sequence[str], answers: Sequence[Answer]) -> SomeFailedError:
    """The error for firings that could not be sent."""
    failed = [(one, a) for one, a in zip(ids, answers, strict=True) if a.error is not None]
    again = [(one, answer) for one, answer in failed if not answer.lasting]
    never = [(one, answer) for one, answer in failed if answer.lasting]
    return SomeFailedError(
        _said(failed),
        again=[one for one, _ in again],
        never=[one for one, _ in never],
        passing=_said(again),
        lasting=_said(never),
        after_seconds=max(answer.after_seconds for _, answer in failed),
        cut_short=not all(answer.sent for _, answer in failed),
    )


def _said(failed: Sequence[tuple[str, Answer]]) -> str:
    """Why requests failed, each reason once."""
    errors = list(dict.fromkeys(answer.error for _, answer in failed if answer.error))
    said = "; ".join(errors[:_ERRORS_SHOWN])
    if len(errors) > _ERRORS_SHOWN:
        said += f"; and {len(errors) - _ERRORS_SHOWN} more"
    return said if len(failed) == 1 else f"{len(failed):,} requests failed: {said}"
