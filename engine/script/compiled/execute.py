"""Instructions, and what runs them.

An instruction is four numbers: operation, a, b, c; mostly a = b op c, of registers. A program loads
the words of the instance that it needs into registers first, and stores those it has changed last.
So one that fails has changed nothing but elements of arrays, which are put back.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from tidegate.engine.compiled import inlined
from tidegate.engine.values import FOREVER

MADE, FAILED, FULL = range(3)
"""What comes of a program: it is at its end; Python shall make the transition; no room."""

# a is what the result is put into; I and F are registers of integers and of doubles
END, COUNT = 0, 1  # COUNT: a statements more
LOAD_I, LOAD_F, STORE_I, STORE_F = 2, 3, 4, 5  # register a, word b
EVENT_I, EVENT_F, KEY_I, KEY_F, NOW = 6, 7, 8, 9, 10  # register a, column b
MOVE_I, MOVE_F = 11, 12
JUMP, JUMP_IF, JUMP_UNLESS = 13, 14, 15  # to a, if register b
NOT, DOUBLE, LONG, ROUND = 16, 17, 18, 19
ADD_I, SUB_I, MUL_I, DIV_I, MOD_I, NEG_I, ABS_I, MIN_I, MAX_I = range(20, 29)
ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, NEG_F, ABS_F, MIN_F, MAX_F = range(29, 38)
FLOOR, CEIL, SQRT = 38, 39, 40
LESS_I, MOST_I, SAME_I, OTHER_I = 41, 42, 43, 44  # <, <=, ==, !=
LESS_F, MOST_F, SAME_F, OTHER_F = 45, 46, 47, 48
GET_I, GET_F, SET_I, SET_F = 49, 50, 51, 52  # register a, array b, index c
NEW_I, NEW_F, COPY_I, COPY_F = 53, 54, 55, 56  # array a: b elements; as array b
OUT_I, OUT_F, EMIT = 57, 58, 59  # register a as word b of output c; output a
TIMER_I, TIMER_F = 60, 61  # timer a, register b times the unit in register c
UNLESS_LESS_I, UNLESS_MOST_I, UNLESS_SAME_I, UNLESS_OTHER_I = 62, 63, 64, 65
UNLESS_LESS_F, UNLESS_MOST_F, UNLESS_SAME_F, UNLESS_OTHER_F = 66, 67, 68, 69  # to a, unless b op c
EMIT_I, EMIT_F = 70, 71  # output c, whose one word b is register a
TESTS = {n: n - LESS_I + UNLESS_LESS_I for n in range(LESS_I, OTHER_F + 1)}
"""A comparison, and the jump that takes its place."""
JUMPS = frozenset({JUMP, JUMP_IF, JUMP_UNLESS, *TESTS.values()})
MAKES_F = frozenset({EVENT_F, KEY_F, MOVE_F, DOUBLE, GET_F, *range(ADD_F, SQRT + 1)})
MAKES_I = frozenset(
    {EVENT_I, KEY_I, NOW, MOVE_I, NOT, LONG, ROUND, GET_I}
    | {*range(ADD_I, MAX_I + 1), *range(LESS_I, OTHER_F + 1)}
)
"""Those that put a value into a register of doubles, of integers."""
WIDTH = 4
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@inlined
def execute(
    automaton, events, instances, found, scratch, pc, event, key, cause, records, steps_max
):
    """Runs a program: what comes of it, and how many emissions there are now."""
    code, I, F = automaton.code, scratch.integers, scratch.doubles  # noqa: E741
    # an index without a sign need not be looked at for being below 0
    here_i, here_f = instances.integers[np.uint64(key)], instances.doubles[np.uint64(key)]
    event = np.uint64(event)
    now = events.time[event]
    first, undo, steps, status = records, 0, np.int64(0), MADE
    pc = np.uint64(pc)
    while True:
        op, a, b, c = code[pc], code[pc + ONE], code[pc + TWO], code[pc + THREE]
        pc += FOUR
        if op == END:
            break
        if op == COUNT:
            steps += a
            if steps > steps_max:
                status = FAILED
                break
        elif op == LOAD_I:
            I[a] = here_i[b]
        elif op == LOAD_F:
            F[a] = here_f[b]
        elif op == STORE_I:
            here_i[b] = I[a]
        elif op == STORE_F:
            here_f[b] = F[a]
        elif op == EVENT_I:
            I[a] = events.integers[np.uint64(events.offset_i[b] + events.place[event])]
        elif op == EVENT_F:
            F[a] = events.doubles[np.uint64(events.offset_f[b] + events.place[event])]
        elif op == KEY_I:
            I[a] = events.keys_i[b, np.uint64(key)]
        elif op == KEY_F:
            F[a] = events.keys_f[b, np.uint64(key)]
        elif op == NOW:
            I[a] = now
        elif op == MOVE_I:
            I[a] = I[b]
        elif op == MOVE_F:
            F[a] = F[b]
        elif op == JUMP:
            pc = np.uint64(a)
        elif op == JUMP_IF:
            if I[b]:
                pc = np.uint64(a)
        elif op == JUMP_UNLESS:
            if not I[b]:
                pc = np.uint64(a)
        elif op == UNLESS_LESS_I:
            if not I[b] < I[c]:
                pc = np.uint64(a)
        elif op == UNLESS_MOST_I:
            if not I[b] <= I[c]:
                pc = np.uint64(a)
        elif op == UNLESS_SAME_I:
            if I[b] != I[c]:
                pc = np.uint64(a)
        elif op == UNLESS_OTHER_I:
            if I[b] == I[c]:
                pc = np.uint64(a)
        elif op == UNLESS_LESS_F:
            if not F[b] < F[c]:
                pc = np.uint64(a)
        elif op == UNLESS_MOST_F:
            if not F[b] <= F[c]:
                pc = np.uint64(a)
        elif op == UNLESS_SAME_F:
            if F[b] != F[c]:
                pc = np.uint64(a)
        elif op == UNLESS_OTHER_F:
            if F[b] == F[c]:
                pc = np.uint64(a)
        elif op == NOT:
            I[a] = 1 - I[b]
        elif op == DOUBLE:
            F[a] = float(I[b])
        elif op == LONG:
            I[a] = whole(F[b])
        elif op == ROUND:
            I[a] = whole(nearest(F[b]))
        elif op == ADD_I:
            I[a] = I[b] + I[c]
        elif op == SUB_I:
            I[a] = I[b] - I[c]
        elif op == MUL_I:
            I[a] = I[b] * I[c]
        elif op == DIV_I:
            if I[c] == 0:
                status = FAILED
                break
            I[a] = quotient(I[b], I[c])
        elif op == MOD_I:
            if I[c] == 0:
                status = FAILED
                break
            I[a] = I[b] - quotient(I[b], I[c]) * I[c]
        elif op == NEG_I:
            I[a] = -I[b]
        elif op == ABS_I:
            I[a] = -I[b] if I[b] < 0 else I[b]
        elif op == MIN_I:
            I[a] = min(I[b], I[c])
        elif op == MAX_I:
            I[a] = max(I[b], I[c])
        elif op == ADD_F:
            F[a] = F[b] + F[c]
        elif op == SUB_F:
            F[a] = F[b] - F[c]
        elif op == MUL_F:
            F[a] = F[b] * F[c]
        elif op == DIV_F:
            F[a] = divided(F[b], F[c])
        elif op == MOD_F:
            F[a] = np.nan if F[c] == 0.0 or math.isinf(F[b]) else np.fmod(F[b], F[c])
        elif op == NEG_F:
            F[a] = -F[b]
        elif op == ABS_F:
            F[a] = math.fabs(F[b])
        elif op == MIN_F:
            F[a] = extreme(F[b], F[c], below(F[c], F[b]))
        elif op == MAX_F:
            F[a] = extreme(F[b], F[c], below(F[b], F[c]))
        elif op == FLOOR:
            F[a] = math.copysign(np.floor(F[b]), F[b]) if math.isfinite(F[b]) else F[b]
        elif op == CEIL:
            F[a] = math.copysign(np.ceil(F[b]), F[b]) if math.isfinite(F[b]) else F[b]
        elif op == SQRT:
            F[a] = math.sqrt(F[b]) if F[b] >= 0.0 else np.nan
        elif op == LESS_I:
            I[a] = I[b] < I[c]
        elif op == MOST_I:
            I[a] = I[b] <= I[c]
        elif op == SAME_I:
            I[a] = I[b] == I[c]
        elif op == OTHER_I:
            I[a] = I[b] != I[c]
        elif op == LESS_F:
            I[a] = F[b] < F[c]
        elif op == MOST_F:
            I[a] = F[b] <= F[c]
        elif op == SAME_F:
            I[a] = F[b] == F[c]
        elif op == OTHER_F:
            I[a] = F[b] != F[c]
        elif op == GET_I:
            if outside(automaton.arrays, b, here_i, I[c]):
                status = FAILED
                break
            I[a] = here_i[np.uint64(automaton.arrays[b, 1] + I[c])]
        elif op == GET_F:
            if outside(automaton.arrays, b, here_i, I[c]):
                status = FAILED
                break
            F[a] = here_f[np.uint64(automaton.arrays[b, 1] + I[c])]
        elif op == SET_I:
            if undo == len(scratch.where) or outside(automaton.arrays, b, here_i, I[c]):
                status = FAILED
                break
            word = np.uint64(automaton.arrays[b, 1] + I[c])
            scratch.where[undo], scratch.was_i[undo] = np.int64(word), here_i[word]
            here_i[word] = I[a]
            undo += 1
        elif op == SET_F:
            if undo == len(scratch.where) or outside(automaton.arrays, b, here_i, I[c]):
                status = FAILED
                break
            word = np.uint64(automaton.arrays[b, 1] + I[c])
            scratch.where[undo], scratch.was_f[undo] = -1 - np.int64(word), here_f[word]
            here_f[word] = F[a]
            undo += 1
        elif op <= COPY_F:
            length, start = automaton.arrays[a, 0], automaton.arrays[a, 1]
            count = np.int64(b)
            if op >= COPY_I:
                other = automaton.arrays[b, 1]
                count = here_i[automaton.arrays[b, 0]]
            if undo + count + 1 > len(scratch.where):
                status = FAILED
                break
            scratch.where[undo], scratch.was_i[undo] = length, here_i[length]
            here_i[length] = count
            undo += 1
            for n in range(count):
                if op in (NEW_I, COPY_I):
                    scratch.where[undo], scratch.was_i[undo] = start + n, here_i[start + n]
                    here_i[start + n] = here_i[other + n] if op == COPY_I else 0
                else:
                    scratch.where[undo] = -1 - (start + n)
                    scratch.was_f[undo] = here_f[start + n]
                    here_f[start + n] = here_f[other + n] if op == COPY_F else 0.0
                undo += 1
        elif op == OUT_I:
            if records == len(found.cause):
                status = FULL
                break
            found.integers[b, np.uint64(found.counts[c])] = I[a]
        elif op == OUT_F:
            if records == len(found.cause):
                status = FULL
                break
            found.doubles[b, np.uint64(found.counts[c])] = F[a]
        elif op in (EMIT, EMIT_I, EMIT_F):
            if records == len(found.cause):
                status = FULL
                break
            output = a
            if op != EMIT:
                output = c
                if op == EMIT_I:
                    found.integers[b, np.uint64(found.counts[c])] = I[a]
                else:
                    found.doubles[b, np.uint64(found.counts[c])] = F[a]
            record = np.uint64(records)
            found.cause[record] = cause
            found.key[record] = key
            found.output[record] = output
            found.number[record] = records - first
            found.row[record] = found.counts[output]
            found.counts[output] += 1
            records += 1
        else:
            at = FOREVER
            if op == TIMER_I:
                length, unit, left = I[b], I[c], FOREVER - now
                if length <= 0:
                    status = FAILED
                    break
                if length <= (left - 1) // unit:
                    at = now + length * unit
            else:
                span = F[b] * float(I[c])
                if not F[b] > 0.0:
                    status = FAILED
                    break
                if span < float(FOREVER) and np.int64(span) < FOREVER - now:
                    at = now + max(np.int64(np.rint(span)), 1)
            scratch.timers[a] = at
    if status != MADE:
        while undo > 0:
            undo -= 1
            word = scratch.where[undo]
            if word >= 0:
                here_i[word] = scratch.was_i[undo]
            else:
                here_f[-1 - word] = scratch.was_f[undo]
        while records > first:
            records -= 1
            found.counts[found.output[records]] -= 1
    return status, records


@inlined
def outside(arrays, array, row, index):
    """Whether an array has no element of an index."""
    return index < 0 or index >= row[np.uint64(arrays[array, 0])]


@inlined
def whole(value):
    """Truncated; what is out of range as the nearest integer, no number as 0."""
    if value != value:
        return np.int64(0)
    if value >= 9223372036854775808.0:
        return np.int64(LARGEST)
    if value <= -9223372036854775808.0:
        return np.int64(SMALLEST)
    return np.int64(value)


@inlined
def quotient(a, b):
    """Truncated towards 0; b is not 0. Small numbers are divided faster."""
    if 0 <= a < 2**32 and 0 < b < 2**32:
        return np.int64(np.uint32(a) // np.uint32(b))
    if b == -1:
        return -a
    found = a // b
    return found + 1 if found < 0 and found * b != a else found


@inlined
def divided(a, b):
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return np.nan
    return math.copysign(np.inf, a) * math.copysign(1.0, b)


@inlined
def nearest(value):
    """The nearest integer, of two the greater. `value + 0.5` would be rounded itself."""
    lower = np.floor(value)
    return lower + 1.0 if value - lower >= 0.5 else lower


@inlined
def below(a, b):
    """Whether one is less than the other; -0.0 is less than 0.0."""
    return a < b or (a == b and math.copysign(1.0, a) < math.copysign(1.0, b))


@inlined
def extreme(a, b, second):
    if a != a or b != b:
        return np.nan
    return b if second else a
