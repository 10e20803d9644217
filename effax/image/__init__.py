"""Resampling of images, with JAX's names and signatures."""

from effax.image.kernels import ResizeMethod
from effax.image.resampling import resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
