"""Read the type of a module's function ``main``."""

from __future__ import annotations

from typing import NamedTuple

from effax.ir.errors import LoweringError
from effax.lowering.xla.host import parsed


class ModuleSignature(NamedTuple):
    """The type of ``main``.

    Attributes:
        ins: the types of its arguments, as MLIR text.
        outs: the types of its results.
        donated: the positions of the arguments whose memory results reuse.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    donated: tuple[int, ...]


ALIASES = ("tf.aliasing_output", "jax.buffer_donor")
"""The attributes of donated arguments."""


def signature(text: str) -> ModuleSignature:
    """Return the signature of a StableHLO module.

    Raises:
        LoweringError: the text does not parse or verify, or has no function ``main``.
    """
    from jaxlib.mlir import ir

    try:
        module = parsed(text)
    except (ValueError, ir.MLIRError) as error:
        raise LoweringError("this is not a StableHLO module", found=str(error).strip()) from error
    for operation in module.body.operations:
        attributes = operation.attributes
        if "sym_name" in attributes and attributes["sym_name"].value == "main":
            type_ = attributes["function_type"].value
            assert isinstance(type_, ir.FunctionType), "a function has a function type"
            ins = tuple([str(t) for t in type_.inputs])
            notes = [str(a) for a in attributes["arg_attrs"]] if "arg_attrs" in attributes else []
            donated = [i for i, note in enumerate(notes) if any(a in note for a in ALIASES)]
            return ModuleSignature(ins, tuple([str(t) for t in type_.results]), tuple(donated))
    raise LoweringError(
        "this module has no function `main`", expected="func.func public @main(...)"
    )
