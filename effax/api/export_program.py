"""The program of an exported function: written beside its module, traced calls, all sizes.

A file has the program as JSON. Rules that are Python functions cannot be written: the program in
the file has plain calls in their place, and a second program, that of reverse mode, which has the
derivatives of these rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from effax.api.custom.decorators import custom_vjp
from effax.arrays.array import Array
from effax.arrays.binding import Operand, bind, run
from effax.ir.dtypes import as_dtype
from effax.ir.edit.answered import answered
from effax.ir.edit.refine import Values, refine
from effax.ir.edit.without_rules import without_rules
from effax.ir.errors import BadArgument, EffaxError
from effax.ir.primitive import ByReference
from effax.ir.prims import ConstantArray, Jit
from effax.ir.symbolic import SymbolicScope
from effax.ir.syntax import Jaxpr
from effax.ir.text.json import from_json, to_json
from effax.ir.text.printer import references
from effax.ir.types import is_inexact
from effax.transforms.framework.runner import unwrap
from effax.transforms.reverse.engine import reverse


class ExportedProgram(NamedTuple):
    """The program of an exported function.

    Attributes:
        jaxpr: the program; its first inputs are the arrays that the function closes over.
        vjp: ``(*inputs, *cotangents) -> (*results, *cotangents of inputs)``, where the rules of
            ``jaxpr`` are not those of the function; otherwise None.
        nonzero: which inputs have a cotangent among the results of ``vjp``.
    """

    jaxpr: Jaxpr
    vjp: Jaxpr | None = None
    nonzero: tuple[bool, ...] = ()

    def refined(self, values: Values) -> ExportedProgram:
        """Return the program for these values of its symbolic sizes."""
        vjp = None if self.vjp is None else refine(self.vjp, values)
        return self._replace(jaxpr=refine(self.jaxpr, values), vjp=vjp)

    def portable(self) -> ExportedProgram | None:
        """Return the program without Python functions; None where its derivative needs them."""
        try:
            jaxpr = answered(self.jaxpr)
        except Exception:  # noqa: BLE001  # of a rule of the user that was not needed so far
            return None
        plain = without_rules(jaxpr)
        if not all(isinstance(x, ConstantArray) for x in references(plain).values()):
            return None
        if plain is jaxpr:
            return self._replace(jaxpr=jaxpr)
        if self.jaxpr.effects:
            return None
        mask = tuple([is_inexact(t) for t in self.jaxpr.in_types])
        try:
            done = unwrap(reverse(self.jaxpr, mask))
        except EffaxError:
            return None
        found = iter(done.nonzero)
        nonzero = tuple([has and next(found) for has in mask])
        return ExportedProgram(plain, without_rules(done.jaxpr), nonzero)

    def traced(self, operands: Sequence[Operand], name: str) -> Sequence[object]:
        """Add a call to the current trace; return its results."""
        prim = Jit(self.jaxpr, name)
        if self.vjp is None:
            return bind(prim, *operands)
        vjp, n_outs = self.vjp, len(self.jaxpr.outs)
        marks = [is_inexact(t) for t in self.jaxpr.out_types]

        def call(*xs: Array) -> tuple[object, ...]:
            return tuple(bind(prim, *xs))

        def forward(*xs: Array) -> tuple[object, tuple[Array, ...]]:
            return call(*xs), xs

        def backward(xs: tuple[Array, ...], cts: Sequence[Array]) -> tuple[object, ...]:
            given = [ct for ct, has in zip(cts, marks, strict=True) if has]
            found = iter(run(vjp, [*xs, *given])[n_outs:])
            return tuple([next(found) if has else None for has in self.nonzero])

        differentiable = custom_vjp(call)
        differentiable.defvjp(forward, backward)
        return differentiable(*cast("Sequence[Array]", operands))


def write_program(program: ExportedProgram) -> tuple[Mapping[str, object], Mapping[str, bytes]]:
    """Return the entries of a header and the parts of a file for a program."""
    parts = {"program": to_json(program.jaxpr).encode()}
    arrays: dict[str, ByReference] = {}
    for name, jaxpr in (("program", program.jaxpr), ("vjp", program.vjp)):
        if jaxpr is not None:
            parts[name] = to_json(jaxpr).encode()
            arrays |= {f"{name}.{key}": x for key, x in references(jaxpr).items()}
    types: dict[str, list[object]] = {}
    for key, x in arrays.items():
        assert isinstance(x, ConstantArray)
        parts[key] = x.value.tobytes()
        types[key] = [str(x.value.dtype), list(x.value.shape)]
    return {"program": {"arrays": types, "nonzero": program.nonzero}}, parts


def read_program(
    header: Mapping[str, object], parts: Mapping[str, bytes], scope: SymbolicScope
) -> ExportedProgram | None:
    """Return the program of a file, or None where it has none that this version reads."""
    entry = header.get("program")
    if not isinstance(entry, dict) or "program" not in parts:
        return None
    arrays = {
        key: ConstantArray(np.frombuffer(parts[key], as_dtype(dtype)).reshape(shape))
        for key, (dtype, shape) in entry["arrays"].items()
    }

    def program(name: str) -> Jaxpr:
        known = {k.removeprefix(f"{name}."): x for k, x in arrays.items() if k.startswith(name)}
        return from_json(parts[name].decode(), references=known, scope=scope)

    try:
        vjp = program("vjp") if "vjp" in parts else None
        return ExportedProgram(program("program"), vjp, tuple(map(bool, entry["nonzero"])))
    except BadArgument:
        return None
