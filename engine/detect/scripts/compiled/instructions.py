"""Instructions of a register machine. `native` makes a function of a program of them.

A program loads the words of the instance that it needs into registers first, and stores those it
has changed last. So one that fails has changed nothing but elements of arrays, which are put back.
Example: `sum = sum + x`, x the value of the event that is taken, as its words 5 and 6:

    LOAD_F 5 5      EVENT_F 6 0     ADD_F 5 5 6     STORE_F 5 5     STORE_F 6 6
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Op(Enum):
    """I and F are registers of integers and of doubles; mostly a = b op c."""

    COUNT = auto()  # a statements more
    LOAD_I = auto()  # register a, word b
    LOAD_F = auto()
    STORE_I = auto()
    STORE_F = auto()
    EVENT_I = auto()  # register a, column b
    EVENT_F = auto()
    KEY_I = auto()
    KEY_F = auto()
    NOW = auto()
    MOVE_I = auto()
    MOVE_F = auto()
    JUMP = auto()  # to instruction a, if register b
    JUMP_IF = auto()
    JUMP_UNLESS = auto()
    NOT = auto()
    DOUBLE = auto()
    LONG = auto()
    ROUND = auto()
    ADD_I = auto()
    SUB_I = auto()
    MUL_I = auto()
    DIV_I = auto()
    MOD_I = auto()
    NEG_I = auto()
    ABS_I = auto()
    MIN_I = auto()
    MAX_I = auto()
    ADD_F = auto()
    SUB_F = auto()
    MUL_F = auto()
    DIV_F = auto()
    MOD_F = auto()
    NEG_F = auto()
    ABS_F = auto()
    MIN_F = auto()
    MAX_F = auto()
    FLOOR = auto()
    CEIL = auto()
    SQRT = auto()
    LESS_I = auto()  # <, <=, ==, !=
    MOST_I = auto()
    SAME_I = auto()
    OTHER_I = auto()
    LESS_F = auto()
    MOST_F = auto()
    SAME_F = auto()
    OTHER_F = auto()
    GET_I = auto()  # register a, array b, index c
    GET_F = auto()
    SET_I = auto()
    SET_F = auto()
    NEW = auto()  # array a: b elements
    COPY = auto()  # array a as array b
    OUT_I = auto()  # register a as word b of output c
    OUT_F = auto()
    EMIT = auto()  # output a
    TIMER_I = auto()  # timer a, register b times the unit in register c
    TIMER_F = auto()
    TIMER_AT = auto()  # timer a, at the instant in register b
    TIMER_CLOCK = auto()  # timer a, when clock b is next


JUMPS = frozenset({Op.JUMP, Op.JUMP_IF, Op.JUMP_UNLESS})


class Instruction(NamedTuple):
    op: Op
    a: int = 0
    b: int = 0
    c: int = 0
