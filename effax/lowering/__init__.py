"""From an effect-free jaxpr to StableHLO, to an executable, to results on a device.

``compile`` takes a program or a StableHLO module and gives a function of arrays, which tells what
XLA made of it and can be written to a file; ``load`` reads that again.
"""

from effax.lowering.executables import CompiledModule, compile, load

__all__ = ["CompiledModule", "compile", "load"]
