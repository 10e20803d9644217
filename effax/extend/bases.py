"""Base classes that derive the rules of the most common kinds of primitives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from inspect import Parameter, signature
from typing import ClassVar, cast

from effax import transforms as passes
from effax.api.interpret import eval_jaxpr
from effax.arrays import creation, promotion
from effax.arrays.array import Array
from effax.extend.guard import annotate_errors, check_parameters, listed
from effax.extend.primitive import ArrayPrimitive, Handle
from effax.extend.rules import Linear, traced
from effax.ir.analysis.cost.count import count_cost
from effax.ir.build import lit
from effax.ir.dtypes import family
from effax.ir.errors import BadRule, IllTyped, NotApplicable
from effax.ir.eval.numpy import evaluate
from effax.ir.primitive import Typing, Value
from effax.ir.prims.common.operands import (
    INEXACT,
    arrays,
    check_dtype,
    check_least,
    check_same_dtype,
)
from effax.ir.state import cached
from effax.ir.syntax import Jaxpr
from effax.ir.types import ArrayType, RefType, Type, array_type, is_inexact
from effax.ir.work import NO_WORK, Work
from effax.lowering.program import without_refs
from effax.lowering.writer import Val, Writer
from effax.transforms.framework.runner import unwrap
from effax.transforms.transpose.cotangent_spec import (
    CotangentSpec,
    GradValue,
    NonLinear,
    ThreadedRef,
)


class FunctionPrimitive(ArrayPrimitive):
    """A function of arrays that stays one equation until it is transformed.

    A subclass defines ``function``, with ``effax.numpy``; typing, evaluation, lowering,
    derivatives, batching and transposition follow from it, and may be overridden. Its fields may be
    jaxprs without effects, which ``function`` runs with :func:`effax.extend.eval_jaxpr`; then
    ``subjaxprs`` and ``with_subjaxprs`` must return and replace them, for passes to rewrite.
    """

    __slots__ = ()

    # `Handle` is `PyTree`, so a subclass may name and annotate its arguments.
    @abstractmethod
    def function(self, *args: Handle, **kwargs: Handle) -> Array | Sequence[Array]:
        """Apply the function to traced arrays, one for each operand of the primitive.

        Returns an array, or a list of arrays for several results.
        """

    def typing(self, *ins: Type) -> Typing:
        """Return the types of the function's results."""
        return Typing(self.definition(*ins).out_types)

    def evaluate(self, *ins: Value) -> Sequence[Value]:
        """Evaluate the program of ``function``."""
        return evaluate(self.definition(*[array_type(x.shape, x.dtype) for x in ins]), ins)

    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Return the function's derivative."""
        moved = [dx for dx in tangents if dx is not None]
        made = unwrap(passes.jvp(self._program(primals), [dx is not None for dx in tangents]))
        results = eval_jaxpr(made.jaxpr, *primals, *moved)
        n = len(made.out_tangents)
        dots = iter(results[n:])
        return results[:n], [next(dots) if has else None for has in made.out_tangents]

    def transpose(
        self, ins: Sequence[Handle | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """Return the function's transpose. Raises TransformError where it is not linear."""
        jaxpr = self._program(ins)
        ct_specs = [_spec_of(x) for x in ins]
        made = unwrap(passes.transpose(jaxpr, ct_specs))
        out_cts = [
            ct
            for ct, t in zip(filled(cts, jaxpr.out_types), jaxpr.out_types, strict=True)
            if is_inexact(t)
        ]
        fixed = [x for x in ins if not isinstance(x, Linear)]
        refs = [x.ref for x in ins if isinstance(x, Linear) and isinstance(x.type, RefType)]
        found = iter(eval_jaxpr(made.jaxpr, *fixed, *refs, *out_cts))
        nonzero = iter(made.nonzero)
        values = [isinstance(spec, GradValue) and next(nonzero) for spec in ct_specs]
        return [next(found) if has else None for has in values]

    def batch(
        self, ins: Sequence[Handle], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        """Return the function of each batch element."""
        types = [
            x.type.update(shape=x.shape[1:]) if has else x.type
            for x, has in zip(ins, batched, strict=True)
        ]
        axes = [0 if has else None for has in batched]
        made = unwrap(passes.vmap(self.definition(*types), size, axes))
        outs = eval_jaxpr(made.jaxpr, *ins)
        return outs, [True for _ in outs]

    def _program(self, ins: Sequence[Handle | Linear]) -> Jaxpr:
        """Return the program of the function, on arguments like these."""
        return self.definition(*[x.type for x in ins])

    def definition(self, *ins: Type) -> Jaxpr:
        """Return the program of ``function``."""
        return program_of(self, tuple(arrays(self, ins)))

    def work(self, ins: Sequence[Type], outs: Sequence[Type]) -> Work:
        """Return the work of the program of ``function``; that of regions is counted apart."""
        return NO_WORK if self.regions() else count_cost(self.definition(*ins)).total

    def lower(self, w: Writer, ins: Sequence[Val], /) -> Sequence[Val]:
        """Write a call of the program of ``function``."""
        jaxpr = self.definition(*[x.type.strong() for x in ins])
        return w.call(without_refs(jaxpr).jaxpr, ins, self.name)

    def _results(self, args: Sequence[Handle]) -> list[Array]:
        found = self.function(*args)
        label = f"the function of {self.name}"
        return list(
            [found]
            if isinstance(found, Array)
            else cast("Sequence[Array]", listed(label, "results", found, rule=self.function))
        )


class Elementwise(FunctionPrimitive):
    """A function of scalars, applied to each element: ``f(x, y, ...)``, not linear in them.

    A subclass defines ``function`` and ``derivatives``, both with ``effax.numpy``; ``evaluate`` and
    ``lower``, which follow from ``function``, may be overridden for speed or precision::

        @dataclass(frozen=True, slots=True)
        class Softsign(extend.Elementwise):
            name: ClassVar[str] = "softsign"

            def function(self, x: Array) -> Array:
                return x / (1 + abs(x))

            def derivatives(self, x: Array) -> Array:  # d(x/(1 + |x|)) = dx/(1 + |x|)²
                return 1 / (1 + abs(x)) ** 2


        softsign = Softsign()

    ``bind`` takes arguments of one dtype and shape; a call promotes and broadcasts them first.

    Attributes:
        accepts: the families of dtypes that it supports: ``"bool"``, ``"int"``, ``"uint"``,
            ``"float"``, ``"complex"``.
    """

    __slots__ = ()
    accepts: ClassVar[frozenset[str]] = INEXACT
    is_elementwise: ClassVar[bool] = True

    @abstractmethod
    def function(self, *args: Handle, **kwargs: Handle) -> Array:
        """Apply the function to traced arrays of one shape, one for each operand."""

    @abstractmethod
    def derivatives(
        self, *args: Handle, **kwargs: Handle
    ) -> Array | float | Sequence[Array | float | None]:
        """Return the derivative by each operand, as a list if there are several. None is zero."""

    def __call__(self, *args: object) -> Array:
        """Apply the function to arrays and scalars, promoted to one dtype and broadcast.

        Raises:
            IllTyped: shapes do not broadcast, or the dtype is not accepted.
        """
        check_parameters(self)
        dtype, weak = promotion.common_dtype(args, self.name)
        if family(dtype) not in self.accepts and self.accepts <= INEXACT:
            dtype, weak = promotion.inexact(dtype, weak)
        together = promotion.brought_together(args, self.name, dtype, weak)
        shape = promotion.broadcast_shapes([x.type.shape for x in together], self.name)
        return self.bind(*[promotion.to_shape(x, shape) for x in together])[0]

    def typing(self, *ins: Type) -> Typing:
        """Return the operands' dtype and shape."""
        types = arrays(self, ins, _arity(type(self)))
        check_least(self, types, 1)
        for t in types:
            check_dtype(self, t, self.accepts)
        check_same_dtype(self, types)
        if any(t.shape != types[0].shape for t in types):
            raise IllTyped(
                f"{self.name} has operands of different shapes",
                expected="equal shapes",
                found=", ".join(map(str, types)),
                remedy="broadcast them first; a call of the primitive does (`prim(x, y)`)",
            )
        return Typing((types[0].update(weak=all(t.weak for t in types)),))

    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Return the sum of derivatives times tangents."""
        label = f"the derivatives of {self.name}"
        found: object = self.derivatives(*primals)
        alone = found is not None and not isinstance(found, list | tuple)
        slopes = listed(
            label, "derivatives", [found] if alone else found, len(primals), self.derivatives
        )
        total: Handle = None
        for slope, dx in zip(slopes, tangents, strict=True):
            if slope is not None and dx is not None:
                total = slope * dx if total is None else total + slope * dx
        return self.bind(*primals), [total]

    def transpose(
        self, ins: Sequence[Handle | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """Raise NotApplicable: the primitive is not linear."""
        raise NotApplicable(f"{self.name} is not linear, and its tangents are products")

    def batch(
        self, ins: Sequence[Handle], batched: Sequence[bool], size: int
    ) -> tuple[Sequence[Array], Sequence[bool]]:
        """Apply the primitive with the batch axis as one more axis of elements."""
        return self.bind(*with_batch_axis(ins, batched, size)), [True]


class LinearPrimitive(ArrayPrimitive):
    """A function that is jointly linear in its operands: ``A·(x, y, ...)``, all inexact.

    A subclass defines ``adjoint`` instead of ``jvp`` and ``transpose``.
    """

    __slots__ = ()

    @abstractmethod
    def adjoint(self, *cts: Array) -> Sequence[Array | None]:
        """Return the cotangent of each operand from that of each result: ``Aᵀ·(ct, ...)``.

        A zero cotangent is passed as an array of zeros.
        """

    def jvp(
        self, primals: Sequence[Handle], tangents: Sequence[Handle | None]
    ) -> tuple[Sequence[Array], Sequence[Array | None]]:
        """Apply the primitive to tangents."""
        moved = [
            creation.zeros_like(x) if dx is None else dx
            for x, dx in zip(primals, tangents, strict=True)
        ]
        return self.bind(*primals), self.bind(*moved)

    def transpose(
        self, ins: Sequence[Handle | Linear], cts: Sequence[Array | None]
    ) -> Sequence[Array | None]:
        """Apply the adjoint. An operand that is not linear is a zero tangent."""
        if all(ct is None for ct in cts):
            return [None for _ in ins]
        out_cts = filled(cts, self.typing(*[x.type for x in ins]).outs)
        label = f"the adjoint of {self.name}"
        made = listed(label, "cotangents", self.adjoint(*out_cts), len(ins), self.adjoint)
        found = cast("Sequence[Array | None]", made)
        return [ct if isinstance(x, Linear) else None for ct, x in zip(found, ins, strict=True)]


def _spec_of(x: Handle | Linear) -> CotangentSpec:
    if not isinstance(x, Linear):
        return NonLinear()
    return ThreadedRef() if isinstance(x.type, RefType) else GradValue()


def with_batch_axis(ins: Sequence[Handle], batched: Sequence[bool], size: int) -> list[Array]:
    """Return the operands of a batch rule with unbatched ones broadcast along the batch axis."""
    return [
        x if has else promotion.to_shape(x, (size, *x.shape))
        for x, has in zip(ins, batched, strict=True)
    ]


@cached(maxsize=256)
def _arity(cls: type[Elementwise]) -> int | None:
    """Return the number of arguments of the function; None for any number."""
    kinds = [p.kind for p in list(signature(cls.function).parameters.values())[1:]]
    return None if Parameter.VAR_POSITIONAL in kinds else len(kinds)


@cached(maxsize=1024)
def program_of(prim: FunctionPrimitive, types: tuple[ArrayType, ...]) -> Jaxpr:
    """Trace ``function``. Raise BadRule if it returns values that are not arrays."""
    label = f"the function of {prim.name}"
    jaxpr, missing = traced(lambda *args: prim._results(args), types, label, prim.function)
    with annotate_errors(label, prim.function):
        _check_program(prim, types, label, jaxpr, missing)
    return jaxpr


def _check_program(
    prim: FunctionPrimitive,
    types: tuple[ArrayType, ...],
    label: str,
    jaxpr: Jaxpr,
    missing: Sequence[bool],
) -> None:
    if any(missing):
        raise BadRule(f"{label} returns None for a result", "arrays")
    if jaxpr.effects:
        raise BadRule(
            f"{label} has effects",
            expected="a function of arrays; it may use local references only",
            found=str(jaxpr.effects),
            remedy="use a `HostPrimitive` for side effects, a `RefPrimitive` for references",
        )
    if isinstance(prim, Elementwise):
        found = [t.strong() if isinstance(t, ArrayType) else t for t in jaxpr.out_types]
        if found != [types[0].strong()]:
            shown = ", ".join(map(str, found))
            raise BadRule(f"{label} returns another type", str(types[0].strong()), shown)


def filled(cts: Sequence[Array | None], types: Sequence[Type]) -> list[Array]:
    """Return the cotangents with zeros in place of None."""
    return [zeros(t) if ct is None else ct for ct, t in zip(cts, types, strict=True)]


def zeros(type_: Type) -> Array:
    """Return zeros of a type, of 64 bits even if such types are not enabled."""
    assert isinstance(type_, ArrayType)
    return promotion.to_shape(lit(0.0, type_.update(shape=())), type_.shape)
