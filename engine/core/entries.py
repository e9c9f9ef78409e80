"""The outbox: statements, entries, the outcomes of attempts; what operators ask for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from tidegate.engine.core.values import Answers, Firings, Signal


@dataclass(frozen=True, slots=True)
class Control:
    """What an operator asked for, effective at the next plan (G24).

    `reset`: the cursor of table `subject` is to be set so that `version` is the next one to be
    read, None: after the head (G10). `enable`: rule `subject` is no longer parked, or disabled
    (G13); `disable`: it stops; option `purge`: its open entries are dead, sealed. `skip`:
    entry `subject` is sealed and passed over; option `unsealed`: though it cannot be sealed.
    `redrive`: it is sealed, and a new entry stands in its place (G18); option `may-double`: though
    its fate is not known, or another history passed it. `asked_at`: when, by the store's clock.
    """

    id: int
    kind: str
    subject: str
    version: int | None = None
    option: str | None = None
    asked_at: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """An action as it stands in an entry: its kind and text, the table that it writes, its number
    among its rule's actions, the declared tables that it `reads`, and whether it only `appends`.

    The text of a signal is JSON: `action` (its number in the rule), `event`, `fields` (expressions
    by field), `types` (Spark's, by field), `group` (the columns with one value a firing that the
    expressions name). That of a webhook has `url`, `secret` and `headers` (with names of variables)
    in place of the event, and no types. That of a switch has `kind` (enable | disable) and `rule`.
    An `unmarked` statement is SQL that leaves no marker: it may be done more than once (G19).
    """

    kind: str  # sql | unmarked | signal | webhook | switch
    text: str
    target: str | None = None
    action: int = 0
    reads: frozenset[str] = frozenset()
    appends: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One outbox entry: one statement for one set of firings, or for one firing (G16).

    `number` is drawn from the store's one increasing sequence when the entry is stored (0 before).
    `kind`, `text`, `target`, `action`, `reads` and `appends` are those of its Statement; kind
    `condition` is a condition that is asked by itself, because it is detached or failed for good,
    with the condition's text. `firing_ids`: hex ids when the entry is for some of the rule's
    firings only, None for all held. `order` is the position in the bucket's order of actions (G15),
    `place` that in the queue of its rule: its own number, or that of the entry which it was
    redriven for, or of the condition that made it; of one place, `order` says which is first.

    `stage`: entries of a bucket with a larger one begin after all with a smaller one were tried;
    None for detached ones, which neither wait for others nor are waited for. `next_attempt_at`:
    when it is due again after a failure, microseconds. `otherwise_at`: when the rule's alternative
    is to be done, unless this was done before; `alternative`: it is one (G23).

    `app_id`: Delta's txnAppId of its marker, whose txnVersion is `number`. `target_version`: the
    target's latest version before the entry was stored; its effect can only stand after it (G16b).

    State: `pending` (not tried yet, or waiting for a retry), `held` (it has used up its attempts,
    or its `fate` is passed or unknown; it holds the queue of its rule), `done`, `dead`, `skipped`
    (passed over by an operator), `redriven` (another entry stands in its place). `error` holds no
    values of the user's tables, `details` may.
    """

    rule: str
    kind: str
    text: str
    target: str | None
    order: int
    firing_ids: tuple[str, ...] | None = None
    number: int = 0
    bucket: int = 0
    state: str = "pending"
    attempts: int = 0
    error: str | None = None
    depth: int = 1
    action: int = 0
    app_id: str = ""
    target_version: int | None = None
    place: int = 0
    details: str | None = None
    fate: str | None = None
    stage: int | None = 0
    reads: frozenset[str] = frozenset()
    appends: bool = False
    next_attempt_at: int = 0
    otherwise_at: int | None = None
    alternative: bool = False

    @property
    def queue(self) -> str:
        """Entries of one queue run in order, one at a time: a rule's, those of its alternative, and
        its webhooks, which wait for others' machines."""
        alternative = "/otherwise" if self.alternative else ""
        return f"{self.rule}{alternative}{'/webhook' if self.kind == 'webhook' else ''}"

    @property
    def ways_past(self) -> tuple[str, str]:
        """The commands that redrive and that skip it, with the options without which they are
        refused: where its effect may be there already, or where it may not be sealed (G16b)."""
        redrive, skip = f"tidegate redrive {self.number}", f"tidegate skip {self.number}"
        if self.fate == Fate.UNKNOWN.value:
            return f"{redrive} --may-double", f"{skip} --unsealed"
        return (f"{redrive} --may-double" if self.fate == Fate.PASSED.value else redrive), skip

    @property
    def is_action(self) -> bool:
        """Whether it is part of its rule's `do`: no condition, and no alternative."""
        return self.kind != "condition" and not self.alternative

    @property
    def ordered(self) -> bool:
        """Whether others wait for its first attempt: not for a detached entry, nor for one that was
        tried, or stands in the place of another."""
        return self.stage is not None and not self.attempts and self.place == self.number

    def same_set(self, other: Entry) -> bool:
        """Whether both are for the same firings of one rule, in the same branch of it."""
        mine, its = (
            (e.bucket, e.rule, e.firing_ids, e.alternative, e.kind == "condition")
            for e in (self, other)
        )
        return mine == its

    def excludes(self, other: Entry) -> bool:
        """Whether the two may not run at the same time: one writes a table that the other reads or
        writes. Two that only append may.

        Example: MERGE INTO a excludes INSERT INTO b SELECT .. FROM a; INSERT INTO a .. FROM event
        does not exclude another such."""
        if self.target is not None and self.target == other.target:
            return not (self.appends and other.appends) or self.target in self.reads | other.reads
        return self.target in other.reads or other.target in self.reads


class Fate(Enum):
    """What became of an entry, asked of its target's log (G16b)."""

    EFFECT = "effect"  # a commit names this store and entry
    SEALED = "sealed"  # its seal stands: it can land no more
    ABSENT = "absent"  # its marker is below its number: it has not landed
    PASSED = "passed"  # no commit is this entry's, but its marker is another history's: at or above
    # its number, or below at the number of an entry that is no one of its app id
    UNKNOWN = "unknown"  # the log was cleaned, or the target cannot be read


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry: its new `state`, with the attempts so far and the last error.

    `signals` were raised by it; they are inserted when it is marked done (G22). `successors` are
    stored and numbered in the same transaction: the entry that takes the place of a redriven one,
    or the actions of a condition that was asked again; `firings` are that one's, decided. `control`
    is what is answered by it. `firing_ids`: those that the entry is for from now on, None: as
    before; what became of its others then stands in successors.

    `ends`: the signals of the end of the action, inserted with `done` for the firings of which no
    other statement is left; `fails`: those of its failure, inserted with `dead`. `asks`: the kind
    and subject of a control that is inserted with `done`. `answers`: what was said of the
    firings of a condition, of which some may be damped before it is settled; `memory`: what is to
    be remembered of the others.
    """

    entry: Entry
    state: str  # pending | held | done | dead | skipped | redriven
    attempts: int
    error: str | None = None
    signals: tuple[Signal, ...] = ()
    details: str | None = None
    fate: str | None = None
    successors: tuple[Entry, ...] = ()
    firings: Firings | None = None
    control: int | None = None
    next_attempt_at: int = 0
    ends: tuple[Signal, ...] = ()
    fails: tuple[Signal, ...] = ()
    firing_ids: tuple[str, ...] | None = None
    asks: tuple[str, str] | None = None
    answers: Answers | None = None
    memory: pa.Table | None = None
