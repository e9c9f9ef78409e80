"""The detector alone, `tidegate.detect` on an Arrow table in memory: events of three types, keys of
which each has one about every 30 s. Against Polars in turn, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa

import tidegate
from benchmarks.figure import Figure
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.model import Rulebook

PATTERNS = {
    "a": "A ; B within 60 s",
    "b": "A ; B ; C within 60 s",
    "c": "(A ; C within 60 s) - B",
}
OPERATORS = {
    "or": "A or B",
    "and": "A and B within 60 s",
    "any": "any(2, A, B, C)",
    "any*": "any(3, A*)",
    "not": "not(B)[A, C]",
    "not_own": "not(B)[A, [60 s]]",
    "A": "A(A, B, C)",
    "A*": "A*(A, B, C)",
    "A*_own": "A*(A, B, [60 s])",
    "P": "P(A, [30 s], C)",
    "P*": "P*(A, [30 s], C)",
    "plus": "A + [60 s]",
    "every": "every(3, A)",
    "nth": "A[2]",
}
CHOSEN = ("and", "any*", "A*")
CONTEXTS = ("recent", "chronicle", "continuous", "cumulative")
EVENTS = 1_000_000
KEYS = 10_000
ROUNDS = 5
THREADS = 2
BUCKET_ROWS = 100_000

Seconds = dict[str, float]


def history(count: int, keys: int, types: int = 3) -> pa.Table:
    """Event types A, B, C .. evenly, in order of time, some of them simultaneous."""
    random = np.random.default_rng(5)
    gap = max(30_000_000 // keys, 1)
    kind = pa.array(random.integers(0, types, count).astype(np.int8))
    return pa.table(
        {
            "event": pa.DictionaryArray.from_arrays(kind, [chr(65 + n) for n in range(types)]),
            "time": 1_700_000_000_000_000 + np.cumsum(random.integers(0, 2 * gap + 1, count)),
            "k": random.integers(0, keys, count),
        }
    )


def book(*expressions: str, context: str = "restricted", types: int = 3) -> Rulebook:
    """A rule per key for each expression."""
    events = "".join(f"  {chr(65 + n)}: {{signal: {{k: bigint}}}}\n" for n in range(types))
    made = "".join(
        f'  r{n}: {{on: "{on}", per: k, context: {context}}}\n' for n, on in enumerate(expressions)
    )
    text = f"rulebook: b\nevents:\n{events}rules:\n{made}"
    return tidegate.load(text, features=SIMULATED)


def fastest(
    runs: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> tuple[Seconds, Seconds]:
    """Each run in turn, some rounds; of each the least seconds and the least CPU seconds, as other
    work on the machine only adds to them."""
    wall, cpu = dict.fromkeys(runs, np.inf), dict.fromkeys(runs, np.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            begun, used = time.perf_counter(), time.process_time()
            run()
            wall[name] = min(wall[name], time.perf_counter() - begun)
            cpu[name] = min(cpu[name], time.process_time() - used)
    return wall, cpu


def against_polars(count: int, keys: int, rounds: int) -> tuple[Seconds, Seconds, dict[str, float]]:
    """Seconds of ours and of theirs by pattern, and million events a second."""
    from benchmarks import peers

    occurrences = history(count, keys)
    theirs = peers.frame(occurrences)
    ours_taken, theirs_taken, told = {}, {}, {}
    for name, on in PATTERNS.items():
        ours, by_hand = book(on), peers.BY_HAND[name]
        if not peers.equal(tidegate.detect(ours, occurrences), by_hand(theirs)):
            raise SystemExit(f"pattern {name}: the answers of engine and Polars differ")
        wall, cpu = fastest(
            {
                "ours": partial(tidegate.detect, ours, occurrences),
                "theirs": partial(by_hand, theirs),
            },
            rounds,
        )
        ours_taken[name], theirs_taken[name] = wall["ours"], wall["theirs"]
        size = f"{name}_{count // 1_000_000}m_{keys // 1000}k"
        told[f"{size}_engine_mps"] = count / wall["ours"] / 1e6
        told[f"{size}_polars_mps"] = count / wall["theirs"] / 1e6
        told[f"{size}_cpu_ratio"] = cpu["ours"] / cpu["theirs"]
    return ours_taken, theirs_taken, told


def patterns() -> list[Figure]:
    from benchmarks import peers

    sizes = {(EVENTS, KEYS): 7, (10 * EVENTS, KEYS): 2, (EVENTS, 1_000): 7, (EVENTS, 1_000_000): 5}
    taken, ratios, told = {}, {}, {}
    for (count, keys), rounds in sizes.items():
        ours, theirs, numbers = against_polars(count, keys, rounds)
        taken[count, keys] = ours
        ratios[count, keys] = max(ours[name] / theirs[name] for name in PATTERNS)
        told[count, keys] = numbers
    least, most = taken[EVENTS, 1_000], taken[EVENTS, 1_000_000]
    one, ten = taken[EVENTS, KEYS], taken[10 * EVENTS, KEYS]
    esper = {n: EVENTS / one[n] / peers.ESPER_PER_SECOND[n] for n in PATTERNS}
    return [
        Figure("detect: engine / Polars, 10k keys", ratios[EVENTS, KEYS], 0.67, told[EVENTS, KEYS]),
        Figure(
            "detect: engine / Polars, 10k keys, 10M events",
            ratios[10 * EVENTS, KEYS],
            0.67,
            told[10 * EVENTS, KEYS],
        ),
        Figure("detect: engine / Polars, 1k keys", ratios[EVENTS, 1_000], 1.0, told[EVENTS, 1_000]),
        Figure(
            "detect: engine / Polars, 1M keys",
            ratios[EVENTS, 1_000_000],
            1.0,
            told[EVENTS, 1_000_000],
        ),
        Figure("detect: 50 times Esper / engine", 50 / min(esper.values()), 1.0, esper),
        Figure("detect: 1M keys / 1k keys", max(most[n] / least[n] for n in PATTERNS), 3.0, {}),
        Figure(
            "detect: an event of 10M / of 1M", max(ten[n] / one[n] for n in PATTERNS) / 10, 1.25, {}
        ),
    ]


def operators() -> list[Figure]:
    occurrences = history(EVENTS, KEYS)
    runs = {n: partial(tidegate.detect, book(on), occurrences) for n, on in OPERATORS.items()}
    _, cpu = fastest(runs, 3)
    rates = {name: EVENTS / seconds / 1e6 for name, seconds in cpu.items()}
    figures = [
        Figure("detect: 5M events/s / slowest operator", 5 / min(rates.values()), 1.0, rates)
    ]
    for pattern in "ab":
        runs = {
            context: partial(tidegate.detect, book(PATTERNS[pattern], context=context), occurrences)
            for context in ("restricted", *CONTEXTS)
        }
        _, cpu = fastest(runs, 3)
        ratios = {context: cpu[context] / cpu["restricted"] for context in CONTEXTS}
        name = f"detect: slowest context / restricted, {pattern}"
        figures.append(Figure(name, max(ratios.values()), 3.0, ratios))
    fewer = history(EVENTS // 5, KEYS)
    each: Seconds = {}
    for name in CHOSEN:
        runs = {
            context: partial(tidegate.detect, book(OPERATORS[name], context=context), fewer)
            for context in ("restricted", *CONTEXTS)
        }
        _, cpu = fastest(runs, 3)
        each |= {f"{name} {context}": cpu[context] / cpu["restricted"] for context in CONTEXTS}
    name = "detect: slowest context / restricted, other operators"
    figures.append(Figure(name, max(each.values()), 3.0, each))
    return figures


def buckets(occurrences: pa.Table) -> list[tuple[dict[str, Batch], int]]:
    """The occurrences in buckets, each up to a watermark; an instant is in one of them."""
    time = occurrences.column("time").to_numpy()
    events = occurrences.column("event").combine_chunks()
    code, names = events.indices.to_numpy(), events.dictionary.to_pylist()
    cuts = np.searchsorted(time, time[BUCKET_ROWS::BUCKET_ROWS])
    made = []
    for first, last in pairwise([0, *cuts, len(time)]):
        table = occurrences.select(["k"]).slice(first, last - first)
        rows = {name: np.flatnonzero(code[first:last] == n) for n, name in enumerate(names)}
        batches = {n: Batch(n, time[first:last][row], row, table) for n, row in rows.items()}
        made.append((batches, int(time[last - 1])))
    return made


def step_through(detector: Detector, made: list[tuple[dict[str, Batch], int]]) -> None:
    carried = Carried()
    for batches, watermark in made:
        _, carried, _ = detector.step(carried, batches, watermark)


def contexts_in_buckets() -> list[Figure]:
    made = buckets(history(EVENTS, KEYS))
    rates: dict[str, float] = {}
    for pattern in "ab":
        runs = {}
        for context in ("restricted", *CONTEXTS):
            detector = Detector(book(PATTERNS[pattern], context=context), {"r0": 0})
            runs[f"{pattern} {context}"] = partial(step_through, detector, made)
        wall, _ = fastest(runs)
        rates |= {name: EVENTS / seconds / 1e6 for name, seconds in wall.items()}
    slowest = min(rate for name, rate in rates.items() if not name.endswith("restricted"))
    return [Figure("contexts in buckets: 8M events/s / slowest", 8 / slowest, 1.0, rates)]


def sharing() -> list[Figure]:
    occurrences = history(EVENTS, KEYS, types=4)
    first, second = PATTERNS["b"], "(A ; B ; C within 60 s) - D"
    one, both = book(first, types=4), book(first, second, types=4)
    _, cpu = fastest(
        {
            "one": partial(tidegate.detect, one, occurrences),
            "both": partial(tidegate.detect, both, occurrences),
        }
    )
    figures = [
        Figure("detect: a rule that shares / the first", cpu["both"] / cpu["one"] - 1, 0.3, cpu)
    ]
    few = history(10_000, 100, types=10)
    pairs = [f"{a} ; {b} within {s} s" for s in range(10, 130, 10)
             for a, b in permutations("ABCDEFGHIJ", 2)]  # fmt: skip
    runs = {
        str(n): partial(tidegate.detect, book(*pairs[:n], types=10), few)
        for n in (1, 10, 100, 1000)
    }
    _, cpu = fastest(runs, 2)
    each = {f"ms_a_rule_of_{n}": 1000 * seconds / int(n) for n, seconds in cpu.items()}
    ratio = each["ms_a_rule_of_1000"] / each["ms_a_rule_of_10"]
    return [*figures, Figure("detect: a rule of 1,000 / of 10", ratio, 1.0, each)]


def in_a_process(module: str) -> list[Figure]:
    """What `show` prints in a module's own process: Polars reads how many threads it may have when
    it is imported."""
    told = subprocess.run(
        [sys.executable, "-m", module],
        env={**os.environ, "POLARS_MAX_THREADS": str(THREADS)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return [Figure(*made) for made in json.loads(told.splitlines()[-1])]


def show(found: Iterable[Figure]) -> None:
    print(json.dumps([[f.name, f.ratio, f.target, f.numbers] for f in found]))


def run() -> list[Figure]:
    return in_a_process("benchmarks.detector")


if __name__ == "__main__":
    show([*patterns(), *operators(), *contexts_in_buckets(), *sharing()])
