"""Segment reductions: combine the rows of an array that have equal segment ids."""

from __future__ import annotations

from effax.numpy.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
