"""The primitives of effax, and functions in the place of those that it lacks, by JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from effax import lax
from effax.api.interpret import eval_jaxpr
from effax.api.operations import built_in_operations
from effax.drop_in.linear_util import WrappedFun
from effax.ir.operation import Operation
from effax.ir.syntax import ClosedJaxpr, Jaxpr
from effax.tree import PyTree

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "custom_linear_solve": "linear_solve_p",
    "remat2": "remat_p",
    "addupdate": "addupdate_p",
}
"""Primitives of effax with another name in JAX."""

_FUNCTIONS: Final = (
    "bessel_i0e", "bessel_i1e", "betainc", "clz", "digamma", "erf_inv", "igamma", "igamma_grad_a",
    "igammac", "lgamma", "log2", "mulhi", "polygamma", "random_gamma_grad", "reduce_precision",
    "reduce_xor", "scatter_sub", "split", "tile", "top_k", "zeta", "stack", "unstack",
)  # fmt: skip
"""Primitives of JAX that are functions of several primitives here."""


class FunctionOperation(Operation):
    """A primitive of JAX that no program of effax contains: its application is a function's."""

    def __init__(self, name: str, function: Callable[..., object], several: bool = False) -> None:
        self.name: str = name
        self.multiple_results: bool = several
        self.function: Callable[..., object] = function

    def bind(self, *args: object, **params: object) -> PyTree:
        """Apply the function."""
        return self.function(*args, **params)


def _call(fun: object, *args: object, **params: object) -> object:
    if isinstance(fun, WrappedFun):
        return fun.call_wrapped(*args)
    return _closed_call(fun, *args, **params)


def _closed_call(*args: object, call_jaxpr: object = None, **params: object) -> object:
    return eval_jaxpr(cast("ClosedJaxpr | Jaxpr", call_jaxpr), *args)


def _made() -> dict[str, Operation]:
    found: dict[str, Operation] = {
        _OTHER_NAMES.get(name, f"{name}_p"): operation
        for name, operation in built_in_operations().items()
    }
    for name in _FUNCTIONS:
        function = getattr(lax, name, None)
        if function is not None:
            found.setdefault(f"{name}_p", FunctionOperation(name, function))
    found["call_p"] = FunctionOperation("call", _call, True)
    found["core_call_p"] = found["call_p"]
    found["closed_call_p"] = FunctionOperation("closed_call", _closed_call, True)
    return found


PRIMITIVES: Final[Mapping[str, Operation]] = _made()
"""The primitives by JAX's names, such as ``add_p``."""

globals().update(PRIMITIVES, __all__=sorted(PRIMITIVES))
