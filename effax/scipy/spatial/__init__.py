"""Rotations in space."""

from effax.scipy.spatial import transform as transform

__all__ = ["transform"]
