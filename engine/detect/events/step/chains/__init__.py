"""Chains of `;`, `-` and `within` nodes, stepped in one scan: which they are (`plan`), the compiled
loop (`scan`), and what goes into it and comes out (`step`)."""

from tidegate.engine.detect.events.step.chains.plan import Chain, chains, only_scanned
from tidegate.engine.detect.events.step.chains.step import Steps, step

__all__ = ["Chain", "Steps", "chains", "only_scanned", "step"]
