"""Sparse arrays of JAX's experiment, which are not supported: a class for ``isinstance``."""

from __future__ import annotations

from effax.ir.errors import NotSupported

__all__ = ["BCOO"]


class BCOO:
    """A sparse array of coordinates: there are none."""

    def __init__(self, *args: object, **options: object) -> None:
        del args, options
        raise NotSupported(
            "sparse arrays are not supported",
            expected="dense arrays",
            remedy="use `x.at[indices].add(values)` and `jnp.take`, whose derivatives are sparse",
        )

    @classmethod
    def fromdense(cls, mat: object, **options: object) -> BCOO:
        """Raise NotSupported."""
        return cls(mat, **options)
