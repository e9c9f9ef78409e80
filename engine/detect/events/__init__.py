"""Detection: occurrences of event types -> detections of rules. Columnar, all keys at once. A step
is a pure function of what is carried, what arrives, watermarks and a limit of timers
(`step.detector.Detector.step`).

A rule on its way in: `rules.algebra.detector_form` brings its expression into normal form,
`rules.algebra.forms` says how it is detected, `step.compile` makes nodes of it (each operator its
own), `graph` makes equal nodes of several rules one.

    operators   a node for each; paths of `;`, `-`, `within` in one scan      step/chains/
    flat        stages in sequence, chosen among in one scan                  graph/flat/
    windowed    windows of `A*`, chosen among in one scan                     graph/flat/
    nested      searched exactly among what is not consumed                   graph/search/

An occurrence on its way: `occurrences.timeline` has the arrivals of all event types in order of
time, of a bucket or of a table; `occurrences.occurrences` numbers them after those that are
carried; `step.key_codes` encodes their keys; the nodes step, operands first (`step.frame` is what
they know); `step.constituents` is what a rule detects; `step.carry` is what outlives the step:
`state.decoded` in hand, `state.tables` as tables, in parts by the keys' hash (`state.partitions`).
`step.partitioned_detector` steps the parts that are touched. The kernels are compiled loops over
columns of numbers.
"""
