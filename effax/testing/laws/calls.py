"""Laws of compiled calls: they are atomic, and one that raises changes no reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from effax.ir.errors import LoweringError
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType
from effax.testing.generate.features import COMPILED
from effax.testing.generate.values import Outcome, check_all, check_outcomes, random_inputs, run
from effax.testing.laws.law import assume, law
from effax.testing.laws.programs import done

if TYPE_CHECKING:
    from effax.lowering.xla import Buffer, Executable, Run


class _Failing:
    """An executable whose first call fails after it has donated its arguments."""

    calls_python = False

    def __init__(self, run: Run) -> None:
        self.careful: bool = True
        self.contended: bool = False
        self._failed = False
        self._run = run

    def run(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        results = self._run(buffers)
        if not self._failed:
            self._failed = True
            raise LoweringError("this call failed: a planted fault")
        return results

    run_whole = run


@law(features=COMPILED, costly=True)
def failed_calls_keep_references(jaxpr: Jaxpr, seed: int = 0) -> None:
    """compile(f)(x) that fails leaves each reference; the next call equals evaluate(f)(x)."""
    # Imported late: only this needs XLA.
    from effax.api.ref_calls import RefProgram, executor_with_refs
    from effax.arrays.device_array import DeviceArray
    from effax.arrays.ref import eager_ref
    from effax.lowering import xla
    from effax.lowering.program import compile_program

    program = done(compile_program(jaxpr))
    changed = program.discharged.changed
    assume(changed and not program.executable.calls_python)
    inputs = random_inputs(jaxpr.in_types, seed)
    operands = [
        eager_ref(np.array(x)) if isinstance(t, RefType) else DeviceArray(np.array(x), t)
        for x, t in zip(inputs, jaxpr.in_types, strict=True)
    ]
    failing = cast("Executable", _Failing(program.executable.run))
    call = executor_with_refs(RefProgram(failing, program.discharged.refs, changed, jaxpr.name_of))
    at = [i for i, t in enumerate(jaxpr.in_types) if isinstance(t, RefType)]
    try:
        call(operands)
    except LoweringError:
        check_all("reference after the failure", [inputs[i] for i in at], _contents(operands, at))
    else:
        raise AssertionError("the call did not fail")
    types = cast("Sequence[ArrayType]", program.discharged.jaxpr.out_types)
    results = [
        np.array(xla.buffer_contents(xla.to_numpy(x), t))
        for x, t in zip(call(operands), types, strict=True)
    ]
    found = Outcome(results[: program.discharged.n_outs], _contents(operands, at))
    check_outcomes(run(jaxpr, inputs), found)


def _contents(operands: Sequence[object], at: Sequence[int]) -> list[np.ndarray]:
    from effax.arrays.ref import EagerRef

    refs = [operands[i] for i in at]
    return [ref.read_now() for ref in refs if isinstance(ref, EagerRef)]
