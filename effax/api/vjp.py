"""``vjp``: run a function, and return its pullback, with cotangents as values or in references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar, TypeVarTuple, cast, overload

from effax import tree
from effax.api.args_residuals import ArgSources, saveable_leaves
from effax.api.custom.logs import logs_of
from effax.api.derivatives import Residuals, linearized, pulled_back_with_logs, traced_call
from effax.api.with_refs import DidntWant
from effax.arrays.array import Array
from effax.arrays.binding import Operand
from effax.arrays.ref import EagerRef, Ref
from effax.arrays.rules.values import retried_on_values
from effax.arrays.tangents import checked_cotangents, tangent_for
from effax.arrays.tracing import result_names, shown_tree
from effax.ir.dtypes import family
from effax.ir.errors import BadArgument, IllTyped, RefError
from effax.ir.syntax import Jaxpr
from effax.ir.trace import alias_error, identity
from effax.ir.types import ArrayType, RefType, Type, is_inexact, ref_type, tangent_type
from effax.transforms.transpose.engine import CotangentSpec, DontWant, GradRef, GradValue
from effax.tree import PyTree, PyTreeDef

R = TypeVar("R")
X = TypeVar("X")
Ts = TypeVarTuple("Ts")

Entry = Ref | GradValue | DontWant


class _Shape(NamedTuple):
    """The static part of a VJP: the linear program and the structures of both sides."""

    linear: Jaxpr
    in_tangents: tuple[bool, ...]
    out_tangents: tuple[bool, ...]
    in_tree: PyTreeDef
    in_types: tuple[Type, ...]
    in_names: tuple[str, ...]
    out_tree: PyTreeDef
    out_types: tuple[Type, ...]
    sources: ArgSources


class VJP(Generic[*Ts]):
    """A pullback: maps cotangents of the results to those of the arguments.

    It is a pytree whose leaves are its residuals and the references bound to it. Without
    references it may be an argument or a result of ``jit`` and of loops.

    Attributes:
        args_res: for each argument of the function, the argument itself where the pullback uses
            it, else ``NotNeeded()``; ``NotSaveable()`` where it is not kept. Entries may be
            replaced, by None too, and must be set to the arguments again before the call.
        opaque_residuals: the other values that the forward pass saved.
    """

    def __init__(
        self,
        shape: _Shape,
        args_res: Sequence[PyTree],
        opaque_residuals: Sequence[Operand],
        entries: Sequence[Entry],
    ) -> None:
        self._shape = shape
        self.args_res: list[PyTree] = list(args_res)
        self.opaque_residuals: list[Operand] = list(opaque_residuals)
        self._entries = list(entries)

    @property
    def jaxpr(self) -> Jaxpr:
        """Return the linear program: residuals, then argument tangents, to result tangents."""
        return self._shape.linear

    @property
    def residuals(self) -> tuple[Operand, ...]:
        """Return the values that the forward pass saved for the backward pass."""
        return tuple(self._shape.sources.joined(self.args_res, self.opaque_residuals))

    def with_refs(self, *entries: object) -> VJP[*tuple[PyTree, ...]]:
        """Return a VJP that accumulates the gradients of some arguments into references.

        Args:
            entries: one an argument of the differentiated function, or a tree of them: a ``Ref``
                into which the gradient is added, ``ad.GradValue()`` (a value is returned), or
                ``ad.DontWant()`` (it is not computed). An entry applies to a whole subtree, but a
                reference to one array.

        Raises:
            BadArgument: the number or the structure of the entries, or an entry, is wrong.
            IllTyped: a reference has another type than the gradient.
            RefError: one reference is passed twice, or none for an argument that is a reference.
        """
        made = _entries(self._shape, entries)
        _check_refs_bound(self._shape, made)
        return VJP(self._shape, self.args_res, self.opaque_residuals, made)

    def __call__(self, cotangents: object) -> tuple[*Ts]:
        """Pull cotangents back.

        Args:
            cotangents: a tree like the function's result.

        Returns:
            One entry an argument: its cotangent, ``GradRef()``, or ``DidntWant()``.

        Raises:
            IllTyped: the cotangents do not fit the results.
            BadArgument: ``args_res`` lacks an argument that is needed.
            RefError: an argument is a reference and no gradient reference is bound for it.
        """
        return self._pulled(cotangents, None)

    def with_logs(self, cotangents: object) -> tuple[tuple[*Ts], dict[str, PyTree]]:
        """Pull cotangents back, and return what backward rules log on the way.

        Rules of ``defvjp_with_logs`` and of ``custom_gradient(with_logs=True)`` log; a plain call
        does not compute what they log. Values in ``vmap`` and ``scan`` are stacked.

        Args:
            cotangents: a tree like the function's result.

        Returns:
            What a call returns, and a dict of the logged values.

        Raises:
            BadArgument: two rules log a value of one name; or as a call.
            TransformError: a rule in a branch logs.

        >>> double = jax.custom_gradient(
        ...     lambda x: (2 * x, lambda g: (2 * g, {"g": g})), with_logs=True
        ... )
        >>> _, pullback = jax.vjp(double, 1.0)
        >>> (ct,), logs = pullback.with_logs(3.0)
        >>> print(ct, logs["g"])
        6.0 3.0
        """
        logs: dict[str, Array] = {}
        return self._pulled(cotangents, logs), logs_of(logs)

    def _pulled(self, cotangents: object, logs: dict[str, Array] | None) -> tuple[*Ts]:
        shape = self._shape
        names = result_names("the cotangent of the result", shape.out_tree)
        cts = checked_cotangents(
            cotangents, shape.out_tree, shape.out_types, "the cotangents of the result", names
        )
        _check_refs_bound(shape, self._entries)
        entries = [e for e, has in zip(self._entries, shape.in_tangents, strict=True) if has]
        types = [t for t, has in zip(shape.in_types, shape.in_tangents, strict=True) if has]
        ct_specs = [_want(e, t) for e, t in zip(entries, types, strict=True)]
        refs = [e for e in entries if isinstance(e, Ref)]
        saved = [*self.residuals]
        res = Residuals([], saved, shape.linear, shape.in_tangents, shape.out_tangents)
        present = [c for c, has in zip(cts, shape.out_tangents, strict=True) if has]
        values = iter(pulled_back_with_logs(res, ct_specs, refs, present, logs))
        leaves = [
            _leaf(entry, has, type_, values)
            for entry, has, type_ in zip(
                self._entries, shape.in_tangents, shape.in_types, strict=True
            )
        ]
        args: tuple[*Ts] = tree.unflatten(shape.in_tree, leaves)
        return args


def _want(entry: Entry, type_: Type) -> CotangentSpec:
    if not isinstance(entry, Ref):
        return entry
    return GradRef() if entry.dtype == type_.dtype else GradRef(entry.dtype)


def _leaf(entry: Entry, has_tangent: bool, type_: Type, values: Iterator[Array | None]) -> object:
    if isinstance(entry, Ref):
        return GradRef()
    if isinstance(entry, DontWant):
        return DidntWant()
    value = next(values) if has_tangent else None
    return tangent_for(type_, value)


def _check_refs_bound(shape: _Shape, entries: Sequence[Entry]) -> None:
    for entry, type_, name in zip(entries, shape.in_types, shape.in_names, strict=True):
        if isinstance(type_, RefType) and isinstance(entry, GradValue) and is_inexact(type_):
            raise RefError(
                f"{name} is a reference, so its gradient can't be returned as a value: it must be "
                "accumulated into a reference, and none is bound",
                expected=f"a reference of type {type_}",
                found="no entry for it",
                remedy="bind one first: `f_vjp.with_refs(grad_ref)(cotangent)`, or pass "
                "`ad.DontWant()`",
            )


def _entries(shape: _Shape, entries: Sequence[object]) -> list[Entry]:
    full: tuple[object, ...] = tree.unflatten(shape.in_tree, range(len(shape.in_types)))
    if len(entries) != len(full):
        raise BadArgument(
            "with_refs takes one entry for each argument of the differentiated function",
            expected=str(len(full)),
            found=str(len(entries)),
            remedy="use `ad.GradValue()` for arguments whose gradient is returned",
        )
    placeholders = tree.leaves(
        tuple(entries), lambda e: e is None or isinstance(e, GradRef | DidntWant)
    )
    for i, entry in enumerate(placeholders):
        if not isinstance(entry, Ref | GradValue | DontWant):
            raise BadArgument(
                f"entry {i} of with_refs is of the wrong type",
                expected="a Ref, ad.GradValue() or ad.DontWant()",
                found=f"{type(entry).__name__}: {entry!r:.60}",
            )
    try:
        leaves = tree.broadcast_prefix(tuple(entries), full)
    except ValueError:
        raise BadArgument(
            "the entries of with_refs have another structure than the arguments",
            expected=shown_tree(shape.in_tree),
            found=repr(tree.map(lambda e: type(e).__name__, tuple(entries))),
        ) from None
    _check_ref_entries(shape, leaves)
    return cast("list[Entry]", leaves)


def _check_ref_entries(shape: _Shape, entries: Sequence[object]) -> None:
    seen: dict[int, str] = {}
    for entry, type_, name in zip(entries, shape.in_types, shape.in_names, strict=True):
        if not isinstance(entry, Ref):
            continue
        if isinstance(entry, EagerRef):
            entry.check_usable()
        ct_spec = type_ if isinstance(type_, RefType) else ref_type(tangent_type(type_))  # type: ignore[arg-type]  # an array's type
        if not is_inexact(type_):
            raise IllTyped(
                f"with_refs binds a reference for {name}, which has no gradient",
                expected="ad.GradValue() or ad.DontWant()",
                found=str(type_),
            )
        if entry.type is not ct_spec and not _is_wider(entry.type, type_):
            raise IllTyped(
                f"the gradient reference for {name} has the wrong type",
                expected=str(ct_spec),
                found=str(entry.type),
                remedy=f"make it with `new_ref(zeros_like({name}))`",
            )
        key = identity(entry)
        if key in seen:
            raise alias_error(f"with_refs gets one reference for {seen[key]} and for {name}", entry)
        seen[key] = name


def _is_wider(have: RefType, type_: Type) -> bool:
    """Return whether a reference accumulates gradients in a wider dtype of the array's family."""
    return (
        isinstance(type_, ArrayType)
        and have.shape == type_.shape
        and family(have.dtype) == family(type_.dtype)
        and have.dtype.itemsize > type_.dtype.itemsize
    )


@overload
def vjp(
    fun: Callable[[*Ts], R],
    *primals: *Ts,
    has_aux: Literal[False] = ...,
    saveable_args: object = ...,
) -> tuple[R, VJP[*Ts]]: ...
@overload
def vjp(
    fun: Callable[[*Ts], tuple[R, X]],
    *primals: *Ts,
    has_aux: Literal[True],
    saveable_args: object = ...,
) -> tuple[R, VJP[*Ts], X]: ...
@overload
def vjp(
    fun: Callable[..., object], *primals: object, has_aux: bool, saveable_args: object = ...
) -> tuple[PyTree, ...]: ...
@retried_on_values
def vjp(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool = False,
    saveable_args: object = True,
) -> tuple[PyTree, ...]:
    """Run ``fun``, and return its result and its pullback.

    Args:
        fun: a function of trees of arrays and references.
        primals: its arguments. All of them are differentiated; integers get ``float0`` zeros.
        has_aux: whether ``fun`` returns a pair, whose second part is not differentiated.
        saveable_args: whether the pullback keeps arguments that it uses: a boolean, or a tuple of
            these, nested as the arguments are. Those that it does not keep are set in
            ``args_res`` before it is called.

    Returns:
        ``(result, VJP)``, with the second part of the pair last where ``has_aux``.

    Raises:
        TransformError: a primitive has no rule, or a differentiated value is written to a
            reference that is not differentiated.
        BadArgument: ``saveable_args`` does not fit the arguments.

    >>> y, pullback = jax.vjp(jnp.multiply, 2.0, 3.0, saveable_args=(True, False))
    >>> pullback.args_res
    [Array(2., dtype=float32, weak_type=True), NotSaveable()]
    >>> pullback.args_res[1] = 3.0
    >>> pullback(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    call = traced_call(fun, primals, {}, "vjp", has_aux)
    mask = tuple(is_inexact(x.type) for x in call.args.leaves)
    res = linearized(call, mask)
    main = call.main
    n = main.num_leaves
    in_tree = call.args.treedef.children()[0]
    types = tuple(x.type for x in call.args.leaves)
    sources = ArgSources(res.sources, types, in_tree)
    flags, layout = saveable_leaves(saveable_args, in_tree)
    shape = _Shape(
        only_outs(res, n),
        mask,
        res.out_tangents[:n],
        in_tree,
        types,
        tuple(call.args.names),
        main,
        call.flat.jaxpr.out_types[:n],
        sources,
    )
    args_res, opaque = sources.split(res.values, flags, layout)
    entries: list[Entry] = [GradValue()] * len(mask)
    pullback: VJP[*tuple[PyTree, ...]] = VJP(shape, args_res, opaque, entries)
    out = tree.unflatten(main, res.outs[:n])
    return (out, pullback, call.unflatten_aux(res.outs)) if has_aux else (out, pullback)


def only_outs(res: Residuals, n: int) -> Jaxpr:
    """Return the linear program with the tangents of the first ``n`` results only."""
    kept = sum(res.out_tangents[:n])
    if kept == len(res.linear.outs):
        return res.linear
    return res.linear.replace(outs=res.linear.outs[:kept])


def _flatten_vjp(f: VJP[*tuple[PyTree, ...]]) -> tuple[list[object], object]:
    refs = [e for e in f._entries if isinstance(e, Ref)]
    static = [None if isinstance(e, Ref) else e for e in f._entries]
    return [f.opaque_residuals, f.args_res, refs], (f._shape, tuple(static))


def _unflatten_vjp(
    aux: tuple[_Shape, tuple[Entry | None, ...]], children: Iterable[PyTree]
) -> VJP[*tuple[PyTree, ...]]:
    shape, static = aux
    opaque, args_res, refs = children
    bound = iter(refs)
    entries = [next(bound) if e is None else e for e in static]
    return VJP(shape, args_res, opaque, entries)


tree.register_pytree_node(VJP, _flatten_vjp, _unflatten_vjp)
