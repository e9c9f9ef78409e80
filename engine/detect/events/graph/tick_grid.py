"""The instants at which sliding windows end: multiples of a length of time since the epoch, or
local midnights."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Protocol

import numpy as np

from tidegate.engine.core.clocks import RunningClock
from tidegate.engine.core.values import FOREVER, Int64
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
