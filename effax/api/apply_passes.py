"""``apply_passes``: a function whose program passes transform before any other transformation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, cast

from effax import tree
from effax.api.static import StaticArgs
from effax.arrays.argument_checks import check_callable
from effax.arrays.binding import run
from effax.arrays.tracing import TraceOptions, flat_args, label_of, like, trace_flat
from effax.passes.pipeline import AnyPass, passes_of
from effax.passes.watch import run_verified
from effax.transforms.framework.runner import unwrap

P = ParamSpec("P")
R = TypeVar("R")


def apply_passes(
    fun: Callable[P, R],
    passes: AnyPass | Sequence[AnyPass],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[P, R]:
    """Return ``fun`` with its program transformed by passes at each call.

    Transformations around it, and an enclosing ``jit``, see the equations of the transformed
    program: ``grad(apply_passes(f, p))`` is the derivative of ``p(f)``. To transform the program
    that is compiled in the end, pass the passes to the outermost ``jit``: ``jit(grad(f),
    passes=p)``.

    Args:
        fun: a function of trees of arrays and references. It is traced on types, as by ``jit``.
        passes: a pass, a pipeline (``effax.passes``), or a list of these.
        static_argnums: positions of arguments that are not traced.
        static_argnames: names of such arguments.

    Returns:
        A function of the same arguments and results.

    Raises:
        BadArgument: ``fun`` is not callable, or ``passes`` has something that is not a pass. When
            called: ``TransformError`` where a pass fails, ``Broken`` where its result is not well
            formed or has another type.

    >>> from effax.passes import dce
    >>> float(effax.apply_passes(lambda x: x * 2.0, dce)(3.0))
    6.0
    """
    check_callable(fun, "apply_passes")
    pipeline = passes_of(passes)
    static = StaticArgs.of(fun, static_argnums, static_argnames)
    label = f"apply_passes of {label_of(fun)}"

    @like(fun)
    def applied(*args: P.args, **kwargs: P.kwargs) -> R:
        left, dynamic, named = static.split(fun, args, cast("dict[str, object]", kwargs))
        flat = flat_args(left, dynamic, named)
        types = [x.type for x in flat.leaves]
        traced = trace_flat(left, flat.treedef, types, flat.names, label, TraceOptions(flat.leaves))
        jaxpr = unwrap(run_verified(pipeline, traced.jaxpr))
        return cast(R, tree.unflatten(traced.out_tree, run(jaxpr, [*traced.consts, *flat.leaves])))

    return applied
