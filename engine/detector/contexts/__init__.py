"""The choice at a rule's root (semantics 3): which instances are detected, what is used up.

One file per context: `choose(ending, history)` yields what is detected at one instant for one key,
and tells the history what is used up. `restricted` is no choice of its own: every node of the event
graph makes it (Carlson & Lisper, Theorem 4.6). Flat expressions and windows have scans of their own
(`flat`); where instances are single occurrences there is nothing to choose (`at_once`).
"""
