"""Passes, primitives and laws that are defined outside of effax, with its public interface only.

- :mod:`effax_passes.narrow` computes contractions in a narrower dtype.
- :mod:`effax_passes.hoist_reads` moves reads of references out of loops.
- :mod:`effax_passes.algebra` rewrites by a cost, with rules that change rounding.
- :mod:`effax_passes.norm` has a primitive, and the rule that finds it in programs.
- :mod:`effax_passes.metrics` has a kind of side effect, and a pass that removes it.
- :mod:`effax_passes.layers` has a loop with weights of its own for each iteration.
- :mod:`effax_passes.laws` has laws about passes, with tolerances.
"""

from __future__ import annotations

from effax_passes.algebra import algebra, price
from effax_passes.hoist_reads import hoist_reads
from effax_passes.layers import Layers, layers
from effax_passes.metrics import Metric, Observe, observe, without_metrics
from effax_passes.narrow import narrow
from effax_passes.norm import Norm, norm, norms

__all__ = [
    "Layers",
    "Metric",
    "Norm",
    "Observe",
    "algebra",
    "hoist_reads",
    "layers",
    "narrow",
    "norm",
    "norms",
    "observe",
    "price",
    "without_metrics",
]
