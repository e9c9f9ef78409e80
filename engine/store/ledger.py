"""The state of one rulebook in a store: an object for each part."""

from __future__ import annotations

from tidegate.engine.store.buckets import Buckets
from tidegate.engine.store.controls import Controls
from tidegate.engine.store.damping import Damping
from tidegate.engine.store.database import Database
from tidegate.engine.store.dead_letters import DeadLetters
from tidegate.engine.store.firings import StoredFirings
from tidegate.engine.store.histories import Histories
from tidegate.engine.store.hours import Hours
from tidegate.engine.store.keepings import Keepings
from tidegate.engine.store.lease import Lease
from tidegate.engine.store.outbox import Outbox
from tidegate.engine.store.past import Past
from tidegate.engine.store.placed import Placed
from tidegate.engine.store.recorded import Recorded
from tidegate.engine.store.rejections import Rejections
from tidegate.engine.store.retention import Retention
from tidegate.engine.store.rule_states import RuleStates
from tidegate.engine.store.signals import Signals
from tidegate.engine.store.sizes import Sizes
from tidegate.engine.store.status import Status
from tidegate.engine.store.suspects import Suspects
from tidegate.engine.store.timers import Timers
from tidegate.engine.store.traces import Traces
from tidegate.engine.store.trends import Trends
from tidegate.engine.store.versions import Versions


class Ledger:
    """Implements `engine.core.ledger.Ledger`, and answers commands.

    Every method of its parts may raise EngineError `store-unreachable`, `store-busy`,
    `store-unusable` or `store-failed`; nothing of it is written then.
    """

    def __init__(self, database: Database, rulebook: str, epoch: int = 0) -> None:
        bound = (database, rulebook, epoch)
        self.lease = Lease(*bound)
        self.versions = Versions(*bound)
        self.controls = Controls(*bound)
        self.signals = Signals(*bound)
        self.buckets = Buckets(*bound)
        self.outbox = Outbox(*bound)
        self.damping = Damping(*bound)
        self.suspects = Suspects(*bound)
        self.retention = Retention(*bound)
        self.histories = Histories(*bound)
        self.rule_states = RuleStates(*bound)
        self.firings = StoredFirings(*bound)
        self.timers = Timers(*bound)
        self.rejections = Rejections(*bound)
        self.dead_letters = DeadLetters(*bound)
        self.status = Status(*bound)
        self.hours = Hours(*bound)
        self.recorded = Recorded(*bound)
        self.past = Past(*bound)
        self.placed = Placed(*bound)
        self.traces = Traces(*bound)
        self.keepings = Keepings(*bound)
        self.sizes = Sizes(*bound)
        self.trends = Trends(*bound)
