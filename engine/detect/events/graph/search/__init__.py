"""The exact choice at a rule's root where no scan gives it (semantics 3): which instances are
detected, what is consumed.

`streams` reads the expression, `nested` makes its node, `choice` steps it: for each key a `history`
among which `relations` search for D, and `contexts` or a `selection` choose. `interval_choice` and
`comparison` have the order (S1, S3). Forms that have a scan of their own are in `flat`.
"""
