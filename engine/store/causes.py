"""The firings that came of what actions did: an index by the signal or the commit that did it.

Example: a firing raises a signal, and another one comes of it. The bucket of the second stores
the id of the first as that of a cause, and where the second is. A firing that comes of a commit is
stored under a digest of the event type and the version, for the number of the entry is not known
where the commit is read. Firings that come of the outside world alone are not in the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.values import ENGINE, Firings
from tidegate.engine.store import id_runs
from tidegate.engine.store.blobs import ID_BYTES
from tidegate.engine.store.id_runs import CAUSES, Ids

OUTSIDE = 1  # the depth of a firing that comes of the outside world alone
_RAISED = rf"^{ENGINE}/[0-9a-f]{{{2 * ID_BYTES}}}-"
_HEX = 2 * ID_BYTES


def commit_id(event: str, version: int) -> bytes:
    """The id of the rows of an event type that a version of its table brought."""
    return blake2b(f"{event}@{version}".encode(), digest_size=ID_BYTES).digest()


def add(connection: sa.Connection, rulebook: str, bucket: int, firings: Sequence[Firings]) -> None:
    """Add the causes of a bucket's firings. `firings`: by the rule's ordinal."""
    id_runs.add_some(connection, rulebook, bucket, [_causes(fired) for fired in firings], CAUSES)


def _causes(fired: Firings) -> Ids:
    """The ids of what a rule's firings came of, each once."""
    nothing = np.empty(0, f"S{ID_BYTES}")
    deep = pc.greater(fired.firings["depth"], OUTSIDE)
    if not pc.any(deep).as_py():
        return nothing
    fired = fired.some(deep).loaded(["event_type"])
    if (sources := fired.sources) is None:
        return nothing
    made = pc.match_substring_regex(sources["signal"], _RAISED).fill_null(False)
    raised = sources["signal"].filter(made)
    first = len(ENGINE) + 1
    signals = pc.unique(pc.utf8_slice_codeunits(raised, first, first + _HEX)).to_pylist()
    found = {bytes.fromhex(one) for one in signals}
    rows = pa.table({"event": fired.rows["event_type"], "version": sources["version"]})
    versions = rows.filter(pc.is_valid(rows["version"])).group_by(["event", "version"])
    commits = versions.aggregate([]).to_pydict()
    pairs = zip(commits["event"], commits["version"], strict=True)
    found |= {commit_id(event, version) for event, version in pairs}
    return np.frombuffer(b"".join(found), f"S{ID_BYTES}") if found else nothing
