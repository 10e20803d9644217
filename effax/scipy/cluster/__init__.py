"""Clustering: the module ``vq``."""

from effax.scipy.cluster import vq as vq

__all__ = ["vq"]
