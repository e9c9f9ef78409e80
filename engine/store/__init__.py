"""The durable state: cursors, carried instances, firings, outbox, signals, lease. One database."""

from engine.store.keeper import LeaseKeeper
from engine.store.ledger import Ledger
from engine.store.outbox import FINISHED
from engine.store.sqlstore import KeptRulebook, SqlStore, migrate, open_store

__all__ = [
    "FINISHED",
    "KeptRulebook",
    "LeaseKeeper",
    "Ledger",
    "SqlStore",
    "migrate",
    "open_store",
]
