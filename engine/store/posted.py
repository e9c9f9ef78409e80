"""Signals that clients posted: the requests of many, in one transaction (G4, G28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched

import sqlalchemy as sa

from tidegate.engine.store.database import insert_all_new
from tidegate.engine.store.tables import signals
