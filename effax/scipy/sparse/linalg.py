"""Iterative solution of linear systems, whose derivatives are those of the solution.

The matrix is an array, an object that multiplies arrays, or a linear function of trees. Sources:
Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems" (1952); van der
Vorst, "Bi-CGSTAB" (1992); Saad and Schultz, "GMRES" (1986).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, cast

import numpy as np

import effax.numpy as jnp
from effax import lax, tree
from effax.arrays.array import Array, ArrayLike
from effax.arrays.shared_docs import shared_docs
from effax.ir.errors import BadArgument, IllTyped
from effax.numpy.ravel_tree import ravel_pytree
from effax.tree import PyTree

__all__ = ["bicgstab", "cg", "gmres"]

Operator = Callable[[PyTree], object]
Vector = Callable[[Array], Array]


class LinearOperator(Protocol):
    """A square matrix that is known by its products."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __matmul__(self, x: Array, /) -> object: ...


Matrix = ArrayLike | Operator | LinearOperator

PARAMETERS: Final = {
    "A": "square matrix, an array or an object with ``shape`` and ``@`` such as a ``BCOO``; or a "
    "linear function from a tree like ``b`` to one like it.",
    "b": "right-hand side: an array or a tree.",
    "x0": "first approximation, like ``b``; zeros by default.",
    "tol": "tolerance of the residual, relative to the norm of ``b``.",
    "atol": "absolute tolerance of the residual; the greater one of both counts.",
    "maxiter": "bound of iterations; 10 times the size of ``b`` by default.",
    "M": "approximation of the inverse of ``A``, of the same form; the identity by default.",
    "restart": "number of vectors that are kept before a restart.",
    "solve_method": "'batched' or 'incremental'; both compute the same.",
}
SOLUTION: Final = "The solution, a tree like ``b``, and None."


class _System(NamedTuple):
    """The first approximation, the tolerance, the bound of iterations, the preconditioner."""

    start: Array
    bound: Array
    maxiter: int
    precondition: Vector


Method = Callable[[Vector, Array, _System], Array]


def _operator(a: Matrix, what: str) -> Operator:
    if callable(a):
        return a
    shape, product = getattr(a, "shape", None), getattr(a, "__matmul__", None)
    if product is None or not isinstance(shape, tuple) or len({*shape}) != 1 or len(shape) != 2:
        raise IllTyped(
            f"{what} is no linear operator",
            expected="a function, or a square matrix: an array, or an object with `shape` and `@`",
            found=type(a).__name__ if shape is None else f"{type(a).__name__} of shape {shape}",
        )
    matrix = cast(LinearOperator, jnp.asarray(a) if isinstance(a, np.ndarray) else a)
    return lambda x: matrix @ cast(Array, x)


def _norm(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(jnp.real(x * jnp.conj(x))))


def _inner(x: Array, y: Array) -> Array:
    return jnp.vdot(x, y, precision="highest")


def _solved(
    method: Method,
    a: Matrix,
    b: PyTree,
    x0: PyTree,
    tol: ArrayLike,
    atol: ArrayLike,
    maxiter: int | None,
    m: Matrix | None,
    symmetric: bool,
) -> tuple[PyTree, None]:
    """Solve on vectors of all elements of the trees."""
    right, unravel = ravel_pytree(b)
    if not jnp.issubdtype(right.dtype, jnp.inexact):
        right = right.astype(float)
    if x0 is not None and tree.structure(x0) != tree.structure(b):
        found = str(tree.structure(x0))
        raise IllTyped("x0 has another structure than b", str(tree.structure(b)), found)
    if x0 is not None:
        want, have = ([jnp.shape(x) for x in tree.leaves(t)] for t in (b, x0))
        if want != have:
            raise IllTyped("x0 has another shape than b", str(want), str(have))
    start = jnp.zeros_like(right) if x0 is None else ravel_pytree(x0)[0].astype(right.dtype)

    def on_vectors(operator: Operator, what: str) -> Vector:
        def apply(x: Array) -> Array:
            image, _ = ravel_pytree(operator(unravel(x)))
            if image.shape != x.shape:
                raise IllTyped(f"{what} maps b to another size", str(x.shape), str(image.shape))
            return image.astype(right.dtype)

        return apply

    matvec = on_vectors(_operator(a, "A"), "A")
    inverse = (lambda x: x) if m is None else on_vectors(_operator(m, "M"), "M")
    limit = 10 * right.size if maxiter is None else maxiter

    def solve(product: Vector, y: Array) -> Array:
        bound = jnp.maximum(jnp.asarray(tol, jnp.real(y).dtype) * _norm(y), atol)
        return method(product, y, _System(lax.stop_gradient(start), bound, limit, inverse))

    solution = lax.custom_linear_solve(matvec, right, solve, solve, symmetric=symmetric)
    return unravel(solution), None


@shared_docs(PARAMETERS, SOLUTION)
def cg(
    A: Matrix,  # noqa: N803  SciPy's name
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,  # noqa: N803  SciPy's name
) -> tuple[PyTree, None]:
    """Solve ``A x = b`` for a Hermitian positive definite ``A`` by conjugate gradients.

    Raises:
        IllTyped: ``A``, ``x0`` or ``M`` does not fit ``b``.

    >>> sparse.linalg.cg(2 * jnp.eye(2), jnp.array([2.0, 2.0]))[0]
    Array([1., 1.], dtype=float32)
    """
    return _solved(_cg, A, b, x0, tol, atol, maxiter, M, symmetric=True)


def _cg(matvec: Vector, b: Array, given: _System) -> Array:
    x = given.start
    r = b - matvec(x)
    z = given.precondition(r)

    def again(state: tuple[Array, ...]) -> Array:
        k, _, r, *_ = state
        return (k < given.maxiter) & (_norm(r) > given.bound)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, x, r, p, gamma = state
        ap = matvec(p)
        alpha = gamma / _inner(p, ap)
        x, r = x + alpha * p, r - alpha * ap
        z = given.precondition(r)
        after = _inner(r, z)
        return k + 1, x, r, z + (after / gamma) * p, after

    first: tuple[Array, ...] = (jnp.asarray(0), x, r, z, _inner(r, z))
    return lax.while_loop(again, step, first)[1]


@shared_docs(PARAMETERS, SOLUTION)
def bicgstab(
    A: Matrix,  # noqa: N803  SciPy's name
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,  # noqa: N803  SciPy's name
) -> tuple[PyTree, None]:
    """Solve ``A x = b`` by stabilized biconjugate gradients.

    Raises:
        IllTyped: ``A``, ``x0`` or ``M`` does not fit ``b``.

    >>> sparse.linalg.bicgstab(2 * jnp.eye(2), jnp.array([2.0, 2.0]))[0]
    Array([1., 1.], dtype=float32)
    """
    return _solved(_bicgstab, A, b, x0, tol, atol, maxiter, M, symmetric=False)


def _ratio(x: Array, y: Array) -> Array:
    """Return x/y, and 0 where y is 0: the iteration has broken down, or ended."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _bicgstab(matvec: Vector, b: Array, given: _System) -> Array:
    x = given.start
    first = b - matvec(x)

    def again(state: tuple[Array, ...]) -> Array:
        k, _, r, *_ = state
        return (k < given.maxiter) & (_norm(r) > given.bound)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, x, r, p, rho = state
        direction = given.precondition(p)
        v = matvec(direction)
        alpha = _ratio(rho, _inner(first, v))
        s = r - alpha * v
        half = given.precondition(s)
        t = matvec(half)
        omega = _ratio(_inner(t, s), _inner(t, t))
        x, r = x + alpha * direction + omega * half, s - omega * t
        after = _inner(first, r)
        beta = _ratio(after, rho) * _ratio(alpha, omega)
        return k + 1, x, r, r + beta * (p - omega * v), after

    start: tuple[Array, ...] = (jnp.asarray(0), x, first, first, _inner(first, first))
    return lax.while_loop(again, step, start)[1]


@shared_docs(PARAMETERS, SOLUTION)
def gmres(
    A: Matrix,  # noqa: N803  SciPy's name
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Matrix | None = None,  # noqa: N803  SciPy's name
    solve_method: str = "batched",
) -> tuple[PyTree, None]:
    """Solve ``A x = b`` by the generalized minimal residual method, with restarts.

    ``maxiter`` bounds the number of restarts.

    Raises:
        BadArgument: an unknown method, or a ``restart`` that is not positive.
        IllTyped: ``A``, ``x0`` or ``M`` does not fit ``b``.

    >>> sparse.linalg.gmres(2 * jnp.eye(2), jnp.array([2.0, 0.0]))[0]
    Array([1., 0.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise BadArgument("unknown solve_method", "'batched' or 'incremental'", repr(solve_method))
    if restart < 1:
        raise BadArgument("gmres keeps one vector or more", "1 or more", str(restart))

    def method(matvec: Vector, b: Array, given: _System) -> Array:
        return _gmres(matvec, b, given, min(restart, b.size))

    return _solved(method, A, b, x0, tol, atol, maxiter, M, symmetric=False)


def _gmres(matvec: Vector, b: Array, given: _System, size: int) -> Array:
    def residual(x: Array) -> Array:
        return b - matvec(x)

    def again(state: tuple[Array, ...]) -> Array:
        k, _, r = state
        return (k < given.maxiter) & (_norm(r) > given.bound)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        k, x, r = state
        basis, hessenberg, length = _arnoldi(matvec, given.precondition(r), given, size)
        target = jnp.zeros(size + 1, b.dtype).at[0].set(length)
        y = jnp.linalg.pinv(hessenberg) @ target
        x = x + y @ basis[:-1]
        return k + 1, x, residual(x)

    start: tuple[Array, ...] = (jnp.asarray(0), given.start, residual(given.start))
    return lax.while_loop(again, step, start)[1]


def _arnoldi(matvec: Vector, r: Array, given: _System, size: int) -> tuple[Array, Array, Array]:
    """Return an orthonormal basis of a Krylov space as rows, the matrix in it, the norm of r."""
    length = _norm(r)
    basis = jnp.zeros((size + 1, r.size), r.dtype).at[0].set(_unit(r, length))
    matrix = jnp.zeros((size + 1, size), r.dtype)

    def extend(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        basis, matrix = state
        w = given.precondition(matvec(basis[k]))
        before = _norm(w)
        column = jnp.zeros(size + 1, r.dtype)
        # Twice is enough: the second pass removes what rounding left.
        for _ in range(2):
            parts = jnp.conj(basis) @ w
            w, column = w - parts @ basis, column + parts
        after = _norm(w)
        after = jnp.where(after > before * jnp.finfo(r.dtype).eps, after, 0)
        column = column.at[k + 1].set(after)
        return basis.at[k + 1].set(_unit(w, after)), matrix.at[:, k].set(column)

    basis, matrix = lax.fori_loop(0, size, extend, (basis, matrix))
    return basis, matrix, length


def _unit(x: Array, length: Array) -> Array:
    return jnp.where(length > 0, x / jnp.where(length > 0, length, 1), 0)
