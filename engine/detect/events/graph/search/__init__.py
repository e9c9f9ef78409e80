"""The exact choice at a rule's root where no scan gives it (semantics 3): which instances are
detected, what is consumed.

One file per context: `choose(history)` yields what is detected at one instant for one key, and
tells the history what is consumed. `restricted` is no choice of its own: every node of the event
graph makes it (Carlson & Lisper, Theorem 4.6). Forms that have a scan of their own are in `flat`.
"""
