"""The parts of one carried table. What is known of each stands in a row of one array; those in
files are nothing else. So ten thousand of them are copied, searched and sent as an array is.

Example: `node:1f` lies in 16,384 partitions. Which of these have a timer that is due is one
comparison of a column. A task that has half of them is sent half of the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.state_parts import FilePart, metadata_of
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Int64
from tidegate.engine.detect.events.state.partitions import COUNT, EVERY, OLD, alike

_NONE, _HERE, _FIRST = 0, 1, 2
"""Of `file`: there is no such part; it is in memory; it lies in the first of the files."""
_AT = np.dtype(
    [("partition", "i4"), ("file", "i4"), ("group", "i4"), ("rows", "i8"), ("bytes", "i8"),
     ("first_file", "i4"), ("first_group", "i4"), ("kind", "i4"), ("count", "i4"),
     ("timers", "i8"), ("due", "i8"), ("old", "i8")]
)  # fmt: skip
PLACE, WRITTEN = ("file", "group"), ("first_file", "first_group")
"""Where a part is now, and where it was first."""
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

    def differing(self, before: Group, by: tuple[str, str] = PLACE) -> Iterator[int]:
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

    def inside(self, files: Collection[str]) -> Int64:
        """The partitions that lie in some files."""
        own = [n for n, (file, _) in enumerate(self.files, _FIRST) if file in files]
        return self.partitions[np.isin(self.at["file"], own)]

    def bytes_of_files(self) -> dict[str, int]:
        """How many bytes of its parts are in each file."""
        there = self.at[self.at["file"] >= _FIRST]
        size = np.bincount(there["file"], there["bytes"])
        return {self.files[n - _FIRST][0]: int(size[n]) for n in np.unique(there["file"]).tolist()}


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
