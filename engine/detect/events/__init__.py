"""Detection: occurrences of event types -> detections of rules. Columnar, all keys at once. A step
is a pure function of what is carried, what arrives, watermarks and a limit of timers
(`detector.Detector.step`).

A rule on its way in: `rules.algebra.detector_form` brings its expression into normal form,
`rules.algebra.forms` says how it is detected, `compile` makes nodes of it (each operator its own,
in `operators/`), `graph` makes equal nodes of several rules one.

    operators   a node for each; paths of `;`, `-`, `within` in one scan      chains/
    flat        stages in sequence, chosen among in one scan                  flat/
    windowed    windows of `A*`, chosen among in one scan                     flat/
    nested      searched exactly among what is not consumed                   search/

An occurrence on its way: `timeline` has the arrivals of all event types in order of time, of
a bucket or of a table; `occurrences` numbers them after those that are carried, `codes` encodes
their keys; the nodes step, operands first (`frame` is what they know, `threads` which of them side
by side); `shown` and `detections` are what a rule detects; `closing` and `carried` what outlives
the step. `partitioned` keeps that by partitions of the keys' hash, `parts` joins and cuts them.
"""
