"""Functions composed with transformations of their arguments and results, as ``linear_util``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from effax.tree import PyTree

__all__ = [
    "Store",
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]

Function = Callable[..., object]
"""A function of any signature."""


class StoreException(Exception):  # JAX's name
    """An auxiliary result is read before it is stored, or stored twice."""


class Store:
    """A place for one auxiliary result."""

    def __init__(self) -> None:
        self._values: list[object] = []

    def store(self, value: object) -> None:
        """Store a value. Raise StoreException if there is one that is not equal."""
        if self._values and not _same(self._values[0], value):
            raise StoreException("Store occupied")
        self._values[:] = [value]

    @property
    def val(self) -> object:
        """Return the value. Raises StoreException if there is none."""
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def reset(self) -> None:
        """Remove the value."""
        self._values.clear()

    def __bool__(self) -> bool:
        return bool(self._values)


def _same(a: object, b: object) -> bool:
    try:
        return a is b or bool(a == b)
    except Exception:  # noqa: BLE001  # `==` of a user
        return False


class WrappedFun:
    """A function under transformations.

    Attributes:
        f: the function itself.
        f_transformed: the function that ``call_wrapped`` calls.
        transforms: the transformations and their static arguments, outermost first.
        stores: the places of auxiliary results.
        params: names and values of keyword arguments.
        debug_info: as passed to :func:`wrap_init`.
    """

    def __init__(
        self,
        f: Function,
        f_transformed: Function,
        transforms: tuple[tuple[Function, tuple[object, ...]], ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, object], ...],
        debug_info: object,
    ) -> None:
        self.f: Function = f
        self.f_transformed: Function = f_transformed
        self.transforms: tuple[tuple[Function, tuple[object, ...]], ...] = transforms
        self.stores: tuple[Store | None, ...] = stores
        self.params: tuple[tuple[str, object], ...] = params
        self.debug_info: object = debug_info
        self.in_type: None = None

    @property
    def __name__(self) -> str:
        return str(getattr(self.f, "__name__", "<unnamed wrapped function>"))

    def wrap(self, gen: Function, static: tuple[object, ...], store: Store | None) -> WrappedFun:
        """Return the function under one more transformation."""
        first = (self.f_transformed,) if store is None else (self.f_transformed, store)
        return WrappedFun(
            self.f,
            partial(gen, *first, *static),
            ((gen, static), *self.transforms),
            (store, *self.stores),
            self.params,
            self.debug_info,
        )

    def call_wrapped(self, *args: object, **kwargs: object) -> object:
        """Call the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> tuple[object, ...]:
        return self.f, self.transforms, self.params, self.debug_info

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        names = [getattr(gen, "__name__", str(gen)) for gen, _ in self.transforms]
        return f"Wrapped function: {self.__name__} under {', '.join(names) or 'nothing'}"


def wrap_init(
    f: Function, params: Mapping[str, object] | None = None, *, debug_info: object = None
) -> WrappedFun:
    """Return a function to which transformations can be added."""
    named = {} if params is None else dict(params)
    return WrappedFun(f, partial(f, **named), (), (), tuple(sorted(named.items())), debug_info)


def transformation2(gen: Function) -> Callable[..., WrappedFun]:
    """Return a decorator of wrapped functions from a function of them and their arguments."""

    def transform(fun: WrappedFun, *static: object) -> WrappedFun:
        return fun.wrap(gen, static, None)

    return transform


def transformation_with_aux2(
    gen: Function,
) -> Callable[..., tuple[WrappedFun, Callable[[], PyTree]]]:
    """Return a decorator as :func:`transformation2`, whose function stores an auxiliary result."""

    def transform(
        fun: WrappedFun, *static: object, use_eq_store: bool = False
    ) -> tuple[WrappedFun, Callable[[], PyTree]]:
        store = Store()
        return fun.wrap(gen, static, store), lambda: store.val

    return transform


Generated = Callable[..., Generator[Any, object, None]]
"""A generator of pairs, as :func:`transformation` says."""


def transformation(gen: Generated) -> Callable[..., WrappedFun]:
    """Return a decorator of wrapped functions from a generator.

    The generator takes static arguments and those of a call; it yields the arguments of the
    function, ``(args, kwargs)``, receives its results, and yields the transformed results.
    """

    def run(f: Function, *args: object, **kwargs: object) -> object:
        made = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(made)
        return made.send(f(*inner_args, **inner_kwargs))

    return transformation2(run)


def transformation_with_aux(
    gen: Generated,
) -> Callable[..., tuple[WrappedFun, Callable[[], PyTree]]]:
    """Return a decorator as :func:`transformation`, whose generator yields an auxiliary result too.

    The decorator returns the wrapped function, and a function that returns the auxiliary result.
    """

    def run(f: Function, store: Store, *args: object, **kwargs: object) -> object:
        made = gen(*args, **kwargs)
        inner_args, inner_kwargs = next(made)
        answer, aux = made.send(f(*inner_args, **inner_kwargs))
        store.store(aux)
        return answer

    return transformation_with_aux2(run)


def merge_linear_aux(aux1: Callable[[], object], aux2: Callable[[], object]) -> tuple[bool, object]:
    """Return which of two auxiliary results is stored (whether the first), and its value."""
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    return True, first


def cache(call: Callable[..., object]) -> Callable[..., object]:
    """Return the function: effax caches by the value of programs, and not of functions."""
    return call
