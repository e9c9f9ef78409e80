"""The durable state: cursors, carried instances, firings, outbox, signals, lease. One database."""

from tidegate.engine.store.lease_keeper import LeaseKeeper
from tidegate.engine.store.ledger import Ledger
from tidegate.engine.store.outbox import FINISHED
from tidegate.engine.store.sqlstore import SqlStore, migrate, open_store
from tidegate.engine.store.versions import KeptRulebook

__all__ = [
    "FINISHED",
    "KeptRulebook",
    "LeaseKeeper",
    "Ledger",
    "SqlStore",
    "migrate",
    "open_store",
]
