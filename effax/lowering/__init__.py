"""Lower an effect-free jaxpr to StableHLO, compile it to an executable, and run it on a device.

``compile`` returns a function of arrays for a program or a StableHLO module. It reports XLA's
optimized module, costs and memory, and can be serialized; ``load`` reads the bytes.
"""

from effax.lowering.executables import CompiledModule, compile, load

__all__ = ["CompiledModule", "compile", "load"]
