"""All parts that are carried, held so that a bucket looks at those alone that it touches (G26).

The parts of a table are a `Group`. A bucket that touches one partition of a table writes one part,
and shares all others with what was before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from types import MappingProxyType
from typing import cast

import numpy as np
import pyarrow as pa

from tidegate.engine.core.state_parts import COMPACTED_BYTES_MAX, FilePart, Shelf
from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.events.state.group import PLACE, WRITTEN, Group
from tidegate.engine.detect.events.state.partitions import (
    SCRIPT,
    Tables,
    alike,
    part_name,
    place,
)

FILES_MAX = 1_000
"""More files than these are not pointed to for long: who reads a bucket's parts opens each."""
_CUT = ("node:", "occ:", "keys:", "apart:")
"""How tables of rules are named that are cut by key."""
_CARRIERS = ("node:", SCRIPT)
"""How tables of instances are named."""


class Parts(Mapping[str, pa.Table]):
    """Carried tables by name. It does not change: what is made of it shares what is alike.

    groups  those that are cut by key
    rest    all others: what is held back, and what the rules carry that scripts take
    """

    __slots__ = ("groups", "rest")

    def __init__(
        self,
        groups: Mapping[str, Group] = MappingProxyType({}),
        rest: Tables = MappingProxyType({}),
    ) -> None:
        self.groups, self.rest = groups, rest

    @classmethod
    def of(cls, tables: Tables, before: Parts | None = None) -> Parts:
        """Some tables so. `before`: what is known of those that are in it."""
        if isinstance(tables, Parts):
            return tables
        known = before or cls()
        new = {name: table for name, table in tables.items() if known.get(name) is not table}
        return known.with_(new, [name for name in known if name not in tables])

    def __getitem__(self, name: str) -> pa.Table:
        if not _is_cut(name):
            return self.rest[name]
        whole, partition = place(name)
        return self.groups[whole][partition]

    def __iter__(self) -> Iterator[str]:
        for whole, group in self.groups.items():
            yield from (part_name(whole, p) for p in group.partitions.tolist())
        yield from self.rest

    def __len__(self) -> int:
        return len(self.rest) + sum(len(group.partitions) for group in self.groups.values())

    def __reduce__(self) -> tuple[object, ...]:
        return Parts, (dict(self.groups), dict(self.rest))

    def __or__(self, other: Parts) -> Parts:
        """Those of both; no name is in the two."""
        return Parts({**self.groups, **other.groups}, {**self.rest, **other.rest})

    def over(self, below: Parts) -> Parts:
        """The others with these in place of those that they have."""
        groups = dict(below.groups)
        for whole, group in self.groups.items():
            groups[whole] = group.over(groups[whole]) if whole in groups else group
        return Parts(groups, {**below.rest, **self.rest})

    @property
    def cut(self) -> Parts:
        """Those that are cut by key."""
        return Parts(self.groups)

    def beside(self, rest: Tables) -> Parts:
        """Those that are cut by key, with these others."""
        return Parts(self.groups, rest)

    @property
    def count(self) -> int:
        """Into how many partitions the tables are cut."""
        return max((group.count for group in self.groups.values()), default=1)

    @property
    def largest(self) -> int:
        """The most instances of a part of keys."""
        return max((group.largest for group in self._carriers()), default=0)

    @property
    def instances(self) -> int:
        """Those of all nodes and scripts."""
        return sum(group.rows for group in self._carriers())

    @property
    def files(self) -> frozenset[str]:
        """The files in which some lie."""
        return frozenset(self._bytes_of_files())

    def named(self, partitions: Iterable[int] | None = None) -> dict[str, pa.Table]:
        """Those of some partitions, in ascending order; None: of all."""
        wanted = None if partitions is None else np.array([*partitions], dtype=np.int64)
        found: dict[str, pa.Table] = {}
        for whole, group in self.groups.items():
            own = group.partitions
            own = own if wanted is None else np.intersect1d(own, wanted, assume_unique=True)
            found |= {part_name(whole, p): group[p] for p in own.tolist()}
        return found

    def waiting(self, watermark: int, asleep: Collection[str]) -> set[int]:
        """The partitions in which something happens by then though nothing arrives, but for these
        tables."""
        groups = [group for whole, group in self.groups.items() if whole not in asleep]
        return {p for group in groups for p in group.waiting(watermark).tolist()}

    def old(self, watermark: int) -> frozenset[str]:
        """The tables in which something is too old by then."""
        return frozenset(whole for whole, group in self.groups.items() if group.ages(watermark))

    def due(self, asleep: Collection[str]) -> int:
        """When the first timer is due, but for these tables."""
        groups = (group for whole, group in self.groups.items() if whole not in asleep)
        return min((group.due for group in groups), default=FOREVER)

    def only(self, whole: str) -> Parts:
        """The parts of one table."""
        return Parts({whole: self.groups[whole]} if whole in self.groups else {})

    def scripts(self, *, only: bool) -> Parts:
        """Those that scripts carry; or, not `only` these, all others."""
        groups, rest = (
            {n: one for n, one in some.items() if n.startswith(SCRIPT) == only}
            for some in (self.groups, self.rest)
        )
        return Parts(groups, rest)

    def of_task(self, task: int, tasks: int) -> Parts:
        """The parts of a task's partitions, with that of every key. Partition p is of task
        p % tasks."""
        return Parts({whole: group.of_task(task, tasks) for whole, group in self.groups.items()})

    def with_(self, written: Tables, gone: Iterable[str] = ()) -> Parts:
        """The same without some, and with these then."""
        groups, rest = dict(self.groups), dict(self.rest)
        new: dict[str, dict[int, pa.Table]] = defaultdict(dict)
        old: dict[str, list[int]] = defaultdict(list)
        for name in gone:
            if _is_cut(name):
                whole, partition = place(name)
                old[whole].append(partition)
            else:
                rest.pop(name, None)
        for name, table in written.items():
            if _is_cut(name):
                whole, partition = place(name)
                new[whole][partition] = table
            else:
                rest[name] = table
        for whole in {**old, **new}:
            groups[whole] = groups.get(whole, Group()).with_(new[whole], old[whole])
            if not groups[whole]:
                del groups[whole]
        return Parts(groups, rest)

    def differing(self, before: Parts) -> frozenset[str]:
        """The names of those that differ from before: that are in another place, too."""
        return frozenset(self._differing(before, PLACE))

    def written_since(self, before: Parts) -> frozenset[str]:
        """The names of those that differ, wherever they are now."""
        return frozenset(self._differing(before, WRITTEN))

    def _differing(self, before: Parts, by: tuple[str, str]) -> Iterator[str]:
        nothing = Group()
        for whole in self.groups.keys() | before.groups.keys():
            now, then = (parts.groups.get(whole, nothing) for parts in (self, before))
            yield from (part_name(whole, p) for p in now.differing(then, by))
        for name in self.rest.keys() | before.rest.keys():
            if not alike(before.rest.get(name), self.rest.get(name)):
                yield name

    def shelved(self, before: Parts, shelf: Shelf) -> Parts:
        """The same after a step of executors: new files are seen here, and there are not too many.
        Raises as `Shelf` does."""
        shelf.check(self.files - before.files)
        return self.moved(shelf)

    def moved(self, shelf: Shelf) -> Parts:
        """The same, in fewer files. Where there are more than `FILES_MAX`, the parts of the
        smallest are put together in one new file: at most `COMPACTED_BYTES_MAX`. What is left in a
        file counts, not what it had at first. Raises as `Shelf` does.

        Example: each bucket touches one partition of a large state, and writes a file for it. The
        thousand and first file is written, and the hundred smallest ones become one.
        """
        sizes = self._bytes_of_files()
        if len(sizes) <= FILES_MAX:
            return self
        emptied, room = set[str](), COMPACTED_BYTES_MAX
        for file, size in sorted(sizes.items(), key=lambda one: one[1]):
            room -= size
            if room < 0:
                break
            emptied.add(file)
        some: dict[str, FilePart] = {}
        for whole, group in self.groups.items():
            inside = group.inside(emptied).tolist()
            some |= {part_name(whole, p): cast(FilePart, group[p]) for p in inside}
        return self.relocated(shelf.write(shelf.read(some)) if some else {})

    def relocated(self, moved: Mapping[str, FilePart]) -> Parts:
        """The same, where some parts lie in other files now. Those in memory stay there."""
        known = {name: part for name in moved if isinstance(part := self.get(name), FilePart)}
        return self.with_(
            {name: replace(moved[name], first=part.written) for name, part in known.items()}
        )

    def _carriers(self) -> Iterator[Group]:
        return (group for whole, group in self.groups.items() if whole.startswith(_CARRIERS))

    def _bytes_of_files(self) -> Counter[str]:
        """How many bytes are left in each file."""
        found = Counter[str]()
        for group in self.groups.values():
            found.update(group.bytes_of_files())
        return found


def stacked(several: Sequence[Parts]) -> Parts:
    """All of them, later ones over earlier ones: two neighbours at a time, so that each part is
    copied a few times only, however many there are."""
    while len(several) > 1:
        first, second = several[::2], several[1::2]
        pairs = zip_longest(first, second, fillvalue=Parts())
        several = [later.over(earlier) for earlier, later in pairs]
    return several[0] if several else Parts()


def _is_cut(name: str) -> bool:
    """Whether a table is cut by key; very old ones were not, and are refused later. The rules that
    a script takes have names of that, and a colon more."""
    whole, cut, _ = name.rpartition("/")
    if name.startswith(SCRIPT):
        return bool(cut) and whole.count(":") == 1
    return bool(cut) and name.startswith(_CUT)
