"""Run programs that say ``import jax`` on effax, unmodified.

``python -m effax.drop_in script.py args``, ``python -m effax.drop_in -m module args``, or, before
``jax`` is imported::

    import effax.drop_in

    effax.drop_in.install()

The modules of JAX are then those of effax. A name that effax lacks raises where it is used.

Source: docs/drop-in.md.
"""

from __future__ import annotations

from effax.drop_in.finder import DropInError, install, uninstall
from effax.drop_in.modules import MissingAttribute, MissingModule

__all__ = ["DropInError", "MissingAttribute", "MissingModule", "install", "uninstall"]
