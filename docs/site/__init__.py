"""The documentation site: the pages of `docs/`, and pages made of the code, for `zensical`.

It is not shipped. It stands with the pages that it completes: the tests read what it writes, and no
room of the engine has to know of it.
"""
