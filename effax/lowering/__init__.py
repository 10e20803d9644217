"""Lower an effect-free jaxpr to StableHLO, compile it to an executable, and run it on a device.

``compile`` returns a function of arrays for a program or a StableHLO module. It reports XLA's
optimized module, costs and memory, and can be serialized; ``load`` reads the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from effax.lazy.packages import lazy as _lazy

if TYPE_CHECKING:
    from effax.lowering.executables import CompiledModule, compile, load
else:
    __getattr__, __dir__ = _lazy(__name__)

__all__ = ["CompiledModule", "compile", "load"]
