"""All parts that are carried, held so that a bucket looks at those alone that it touches (G26).

The parts of a table are a `Group`: what is known of each stands in a row of one array. Those in
files are nothing else. So ten thousand of them are copied, searched and sent as a few arrays are.

Example: `node:1f` lies in 16,384 partitions. Which of these have a timer that is due is one
comparison of a column. A task that has half of them is sent half of the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tidegate.engine.core.state_parts import COMPACTED_BYTES_MAX, FilePart, Shelf, metadata_of
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Int64
from tidegate.engine.detect.events.state.partitions import (
    COUNT,
    EVERY,
    OLD,
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
_NONE, _HERE, _FIRST = 0, 1, 2
"""Of `file`: there is no such part; it is in memory; it lies in the first of the files."""
_AT = np.dtype(
    [("partition", "i4"), ("file", "i4"), ("group", "i4"), ("rows", "i8"), ("bytes", "i8"),
     ("first_file", "i4"), ("first_group", "i4"), ("kind", "i4"), ("count", "i4"),
     ("timers", "i8"), ("due", "i8"), ("old", "i8")]
)  # fmt: skip
_PLACE, _WRITTEN = ("file", "group"), ("first_file", "first_group")
_NUMBERS = {COUNT: 1, TIMERS: 0, DUE: FOREVER, OLD: FOREVER}
"""Of metadata, and what they are where they are not said."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The parts of one table.

    at     a row for each part, by partition: where it is (`file`, and the row group in it), where
           it was first, its rows, its bytes in the file, and what its metadata say (`_NUMBERS`)
    here   the parts in memory
    files  of those in files: name and size, bytes
    kinds  what metadata say beside the numbers, by `kind`
    """

    at: np.ndarray = field(default_factory=lambda: np.zeros(0, _AT))
    here: Mapping[int, pa.Table] = field(default_factory=dict)
    files: tuple[tuple[str, int], ...] = ()
    kinds: tuple[Mapping[bytes, bytes], ...] = ()

    def __bool__(self) -> bool:
        return len(self.at) > 0

    def __getitem__(self, partition: int) -> pa.Table:
        """Raises KeyError."""
        row = bisect_left(self.at["partition"], partition)
        if row == len(self.at) or self.at["partition"][row] != partition:
            raise KeyError(partition)
        _, file, group, rows, size, first_file, first_group, kind, *numbers = self.at[row].item()
        if file == _HERE:
            return self.here[partition]
        (name, file_size), first = self.files[file - _FIRST], self.files[first_file - _FIRST][0]
        said = {key: str(n).encode() for key, n in zip(_NUMBERS, numbers, strict=True)}
        moved = None if (first, first_group) == (name, group) else (first, first_group)
        return FilePart(name, group, rows, {**self.kinds[kind], **said}, size, file_size, moved)

    def __reduce__(self) -> tuple[object, ...]:
        """Written out: an array as compressed bytes, a table as a stream without what it is cut
        from."""
        here = {partition: _stream(table) for partition, table in self.here.items()}
        at = pa.compress(self.at.tobytes(), codec="lz4", asbytes=True)
        return _unpacked, (len(self.at), at, here, self.files, self.kinds)

    @property
    def partitions(self) -> Int64:
        """In ascending order."""
        return self.at["partition"].astype(np.int64)

    @property
    def count(self) -> int:
        """Into how many partitions the table is cut."""
        return int(self.at["count"].max(initial=1))

    @property
    def largest(self) -> int:
        """The most rows of a part of keys: that of every key is not cut."""
        return int(self.at["rows"][self.at["partition"] != EVERY].max(initial=0))

    @property
    def rows(self) -> int:
        """Of all parts."""
        return int(self.at["rows"].sum())

    @property
    def filed(self) -> Int64:
        """The partitions that lie in files."""
        return self.partitions[self.at["file"] >= _FIRST]

    def waiting(self, watermark: int) -> Int64:
        """The partitions in which something happens by then though nothing arrives."""
        return self.partitions[(self.at["due"] <= watermark) | (self.at["old"] <= watermark)]

    def ages(self, watermark: int) -> bool:
        """Whether some of it is too old by then."""
        return bool((self.at["old"] <= watermark).any())

    @property
    def due(self) -> int:
        """When the first timer is due."""
        return int(self.at["due"].min(initial=FOREVER))

    def of_task(self, task: int, tasks: int) -> Group:
        """The partitions p for which p % tasks == task, with that of every key."""
        partition = self.at["partition"]
        own = self.at[(partition == EVERY) | (partition % tasks == task)]
        here = {p: t for p, t in self.here.items() if p == EVERY or p % tasks == task}
        return replace(self, at=own, here=here)

    def with_(self, written: Mapping[int, pa.Table], gone: Iterable[int] = ()) -> Group:
        """The group without some partitions, and with these parts then."""
        gone, new = [*gone, *written], list[tuple[int, ...]]()
        here, kinds = dict(self.here), list(self.kinds)
        numbers = {file: n for n, (file, _) in enumerate(self.files, _FIRST)}
        sizes = [size for _, size in self.files]
        for partition in gone:
            here.pop(partition, None)
        for partition, part in written.items():
            places, size = [_HERE, 0, _HERE, 0], 0
            if isinstance(part, FilePart):
                places = []
                for file, group in ((part.file, part.group), part.written):
                    if file not in numbers:
                        numbers[file] = _FIRST + len(numbers)
                        sizes.append(part.file_size)
                    places += [numbers[file], group]
                size = part.bytes
            else:
                here[partition] = part
            said = metadata_of(part)
            kind = {key: value for key, value in said.items() if key not in _NUMBERS}
            if kind not in kinds:
                kinds.append(kind)
            numbered = [int(said.get(key, unsaid)) for key, unsaid in _NUMBERS.items()]
            if partition == EVERY:
                numbered[-1] = FOREVER  # it is touched by every step
            row = (partition, *places[:2], len(part), size, *places[2:], kinds.index(kind))
            new.append((*row, *numbered))
        at = _with_rows(self.at, np.array(new, _AT), np.array(gone, np.int32))
        files = tuple(zip(numbers, sizes, strict=True))
        return _without_unused(Group(at, here, files, tuple(kinds)))

    def over(self, below: Group) -> Group:
        """The other group with these parts in place of its own."""
        numbers = {file: n for n, (file, _) in enumerate(below.files, _FIRST)}
        sizes = dict(below.files)
        for file, size in self.files:
            numbers.setdefault(file, _FIRST + len(numbers))
            sizes[file] = size
        kinds = [*below.kinds, *(kind for kind in self.kinds if kind not in below.kinds)]
        again = np.array([_NONE, _HERE, *(numbers[name] for name, _ in self.files)])
        kind = np.array([kinds.index(one) for one in self.kinds], np.int32)
        own = self.at.copy()
        own["file"], own["first_file"] = again[own["file"]], again[own["first_file"]]
        own["kind"] = kind[own["kind"]]
        at, here = _with_rows(below.at, own, own["partition"]), dict(below.here)
        for partition in own["partition"].tolist() if here else ():
            here.pop(partition, None)
        files = tuple((name, sizes[name]) for name in numbers)
        return _without_unused(Group(at, {**here, **self.here}, files, tuple(kinds)))

    def differing(self, before: Group, by: tuple[str, str] = _PLACE) -> Iterator[int]:
        """The partitions whose parts are not in both, or not alike."""
        if self is before:
            return
        both = self.partitions
        if not np.array_equal(both, before.partitions):
            both = np.union1d(both, before.partitions)
        (one, other), (file, group) = (_of_each(g.at, both) for g in (self, before)), by
        numbers = {name: n for n, (name, _) in enumerate(self.files, _FIRST)}
        again = [_NONE, _HERE, *(numbers.get(name, -1) for name, _ in before.files)]
        differs = (np.array(again)[other[file]] != one[file]) | (one[group] != other[group])
        yield from both[differs].tolist()
        for partition in self.here.keys() & before.here.keys():
            if not alike(before.here[partition], self.here[partition]):
                yield partition


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
        return frozenset(self._differing(before, _PLACE))

    def written_since(self, before: Parts) -> frozenset[str]:
        """The names of those that differ, wherever they are now."""
        return frozenset(self._differing(before, _WRITTEN))

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
            own = [n for n, (file, _) in enumerate(group.files, _FIRST) if file in emptied]
            inside = group.partitions[np.isin(group.at["file"], own)]
            some |= {part_name(whole, p): cast(FilePart, group[p]) for p in inside.tolist()}
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
            there = group.at[group.at["file"] >= _FIRST]
            size = np.bincount(there["file"], there["bytes"])
            for n in np.unique(there["file"]).tolist():
                found[group.files[n - _FIRST][0]] += int(size[n])
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


def _with_rows(at: np.ndarray, new: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Rows without those of some partitions, and with new ones then. The last of `gone` are the
    partitions of the new rows, in their order."""
    row = np.searchsorted(at["partition"], gone)
    there = row < len(at)
    there[there] = at["partition"][row[there]] == gone[there]
    if len(new) == len(gone) and there.all():
        found = at.copy()
        found[row] = new
        return found
    left = np.ones(len(at), dtype=bool)
    left[row[there]] = False
    count = int(left.sum())
    found = np.empty(count + len(new), _AT)
    found[:count], found[count:] = at[left], new
    return found[np.argsort(found["partition"], kind="stable")]


def _of_each(at: np.ndarray, partitions: Int64) -> np.ndarray:
    """A row for each of some partitions; where there is no part, its `file` is `_NONE`."""
    if len(at) == len(partitions):
        return at
    found = np.zeros(len(partitions), _AT)
    found[np.searchsorted(partitions, at["partition"])] = at
    return found


def _without_unused(group: Group) -> Group:
    """The group without files to which nothing in it points."""
    at, size = group.at, len(group.files) + _FIRST
    used = np.bincount(at["file"], minlength=size) + np.bincount(at["first_file"], minlength=size)
    used[:_FIRST] = 1
    if used.all():
        return group
    again = np.cumsum(used > 0) - 1
    for name in ("file", "first_file"):
        at[name] = again[at[name]]
    files = (file for file, n in zip(group.files, used[_FIRST:].tolist(), strict=True) if n)
    return replace(group, files=tuple(files))


def _unpacked(size: int, at: bytes, here: Mapping[int, bytes], *others: Any) -> Group:
    rows = pa.decompress(at, size * _AT.itemsize, codec="lz4", asbytes=True)
    tables = {partition: pa.ipc.open_stream(data).read_all() for partition, data in here.items()}
    return Group(np.frombuffer(rows, _AT), tables, *others)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
