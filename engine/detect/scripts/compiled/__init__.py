"""Scripts of numbers as machine code, which one kernel runs over columns.

    program.Compiled    markers and blocks as typed trees
      -> layout         variables as words of 64 bits, a row an instance
      -> statements, expressions, arithmetic    the places of a move as instructions of LLVM's
      -> function, native    of which one function is made, and machine code of it
      -> automaton      `table[state, symbol]` and the function of each move, made as reached

    Arrivals            a bucket's occurrences
      -> fleet          instances as arrays, from what is carried and back to it
      -> kernel         the pass; it stops where something is Python's to do, and is resumed
      -> found          emissions by the column
      -> bucket         drives all that

    case, group         expressions over an input's value
      -> rows           the same machine code, for all rows of a bucket at once

A transition is made whole or not at all: the kernel takes back one that fails, passes a limit or
finds no room, and the interpreter makes it (`instances`). So faults and limits are told in one
place. It takes events, too, that have a null or whose instance has one, and fires timers that are
due together. Strings are codes of a table of the step. Arrays in values, clocks with variables and
functions of strings are not compiled: such a script is interpreted, as is a bucket with many nulls
in what is stored, or in which more timers fire than may.
"""
