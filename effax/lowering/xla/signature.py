"""The type of a module's function ``main``, from the module itself."""

from __future__ import annotations

from typing import NamedTuple

from effax.ir.errors import LoweringError
from effax.lowering.xla.host import parsed


class ModuleSignature(NamedTuple):
    """What ``main`` takes and gives.

    Attributes:
        ins: the types of its arguments, in MLIR's notation.
        outs: the types of its results.
        donated: the positions of the arguments whose memory results take.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    donated: tuple[int, ...]


ALIASES = ("tf.aliasing_output", "jax.buffer_donor")
"""The attributes of arguments that say that their memory is used again."""


def signature(text: str) -> ModuleSignature:
    """The signature of a StableHLO module.

    Raises:
        LoweringError: the text does not parse or verify, or has no function ``main``.
    """
    from jaxlib.mlir import ir

    try:
        module = parsed(text)
    except (ValueError, ir.MLIRError) as error:
        raise LoweringError("this is no StableHLO module", found=str(error).strip()) from error
    for operation in module.body.operations:
        attributes = operation.attributes
        if "sym_name" in attributes and attributes["sym_name"].value == "main":
            type_ = attributes["function_type"].value
            assert isinstance(type_, ir.FunctionType), "a function has the type of one"
            ins = tuple([str(t) for t in type_.inputs])
            notes = [str(a) for a in attributes["arg_attrs"]] if "arg_attrs" in attributes else []
            donated = [i for i, note in enumerate(notes) if any(a in note for a in ALIASES)]
            return ModuleSignature(ins, tuple([str(t) for t in type_.results]), tuple(donated))
    raise LoweringError(
        "this module has no function `main`", expected="func.func public @main(...)"
    )
