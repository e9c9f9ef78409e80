"""Event scripts run: occurrences of a script's inputs -> its emissions (`eventscript.md` 3, 4, 5).
A part of the detector stage: pure, no I/O, no clock.

    tree.Program      what `rules.eventscript.reader.read` gives
      -> places       its markers and blocks, counts expanded: where the text leads from each
      -> paths        `enter` and `step` over path sets
      -> machine      the automaton, made as its states are reached: move = (next state, places)
      -> program      places as closures: `expressions`, `statements`, `timers` (timed markers),
                      over an instance's variables and one `context`; `values` says what these hold

    Batch by input    a bucket's occurrences
      -> inputs       in one order, each with its name, value (`columns`) and key
      -> run          one step: carried instances (`state`) make transitions (`instances`)
                      one by one; or, in a script of numbers, on one kernel (`compiled`)
      -> emissions    by the column; and what to carry on

Example: `in {} Use, {} Insp out {} V (Use() Use() {!> V();})*`.

    places      0: Use   1: Use   2: the block
    start       state {0}
    Use at 1    {0} -> {1}, runs 0
    Insp at 2   not expected: `$error`
    Use at 3    {1} -> {0}, runs 1 and 2: V at 3

`programs` has the scripts of a rulebook. What is carried of an instance is its path set as places,
`1` after the first Use: numbers of states mean nothing outside of one process.
"""
