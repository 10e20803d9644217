"""Sparse arrays of coordinates: elements and their indices.

The operations are gathers and scatters of the elements, so derivatives with respect to them are
sparse as well.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any, Final, cast

import effax.numpy as jnp
from effax import tree
from effax.arrays.array import Array, ArrayLike, DTypeLike
from effax.arrays.axes import plain_axes
from effax.arrays.batching import vmap
from effax.arrays.binding import bind1, program_of
from effax.ir.dtypes import DType
from effax.ir.errors import BadArgument, IllTyped
from effax.ir.prims import Jit
from effax.ir.trace import current_trace
from effax.tree import PyTree

__all__ = [
    "BCOO", "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_todense", "bcoo_transpose", "todense",
]  # fmt: skip

Parts = tuple[Array, Array]
TODENSE: Final = "todense"
"""The label of the call that :func:`todense` is in a program."""


@tree.register_pytree_node_class
class BCOO:
    """A sparse array: elements and their indices, each with leading batch axes.

    An element whose index is not inside of the shape is padding, and has no effect. Elements of
    equal indices are added. ``A @ x``, ``x @ A`` and ``A @ B`` are products; ``A * c`` and
    ``A + B`` are sparse.

    Attributes:
        data: elements, of shape (*batch, nse, *dense).
        indices: integers of shape (*batch, nse, n_sparse).

    >>> from effax.experimental.sparse import BCOO
    >>> BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])) @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    data: Array
    indices: Array
    _sizes: tuple[int, ...]

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        """Create the array of ``(data, indices)``.

        Args:
            args: elements, of shape (*batch, nse, *dense), and indices, of (*batch, nse, n_sparse).
            shape: sizes: those of the batch, of the sparse axes, and of the dense ones.
            indices_sorted: accepted as in JAX.
            unique_indices: accepted as in JAX.

        Raises:
            IllTyped: shapes do not fit, or indices are not integers.
        """
        data, indices = (jnp.asarray(x) for x in args)
        n_batch = indices.ndim - 2
        fits = n_batch >= 0 and data.shape[: n_batch + 1] == indices.shape[:-1]
        whole = tuple(shape)
        if fits:
            n_sparse = indices.shape[-1]
            batch, rest = indices.shape[:n_batch], data.shape[n_batch + 1 :]
            fits = whole == (*batch, *whole[n_batch : n_batch + n_sparse], *rest)
            fits = fits and len(whole) == n_batch + n_sparse + len(rest)
        if not fits or indices.dtype.kind not in "iu":
            raise IllTyped(
                "the parts of BCOO do not fit",
                expected="(*batch, nse, *dense) and integers (*batch, nse, n_sparse)",
                found=f"{data.type} and {indices.type} for shape {whole}",
            )
        self.data, self.indices, self._sizes = data, indices, whole[n_batch:]

    def tree_flatten(self) -> tuple[Parts, tuple[int, ...]]:
        """Return the parts, and the sizes without those of the batch, which ``vmap`` changes."""
        return (self.data, self.indices), self._sizes

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Iterable[PyTree], /) -> BCOO:
        """Return the array of sizes and parts, which may be any objects."""
        made = object.__new__(cls)
        (made.data, made.indices), made._sizes = children, aux_data
        return made

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Return the nonzero elements of an array; see :func:`bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """Number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def nse(self) -> int:
        """Number of specified elements of each batch element, padding included."""
        return self.indices.shape[-2]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of all axes."""
        return (*self.indices.shape[: self.n_batch], *self._sizes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the dense array."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.data.dtype

    @property
    def T(self) -> BCOO:
        """Transpose."""
        return self.transpose()

    def __repr__(self) -> str:
        parts: tuple[object, object] = self.data, self.indices
        if not isinstance(parts[0], Array):
            return f"BCOO({parts[0]!r}, {parts[1]!r})"
        found = f"BCOO({self.dtype.name}{list(self.shape)}, nse={self.nse}"
        extra = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        return found + "".join(f", {name}={n}" for name, n in extra.items() if n) + ")"

    def todense(self) -> Array:
        """Return the dense array."""
        return bcoo_todense(self)

    def sum_duplicates(self, nse: int | None = None) -> BCOO:
        """Return the array with one element for each index; see :func:`bcoo_sum_duplicates`."""
        return cast(BCOO, _of("duplicates").bcoo_sum_duplicates(self, nse))

    def sort_indices(self) -> BCOO:
        """Return the array with its elements in the order of their indices."""
        return cast(BCOO, _of("duplicates").bcoo_sort_indices(self))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return the array with its axes in another order; see :func:`bcoo_transpose`."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return bcoo_transpose(self, permutation=order)

    def astype(self, dtype: DTypeLike) -> BCOO:
        """Return the array in another dtype."""
        return self.with_data(self.data.astype(dtype))

    def sum(self, axis: int | Sequence[int] | None = None) -> Array | BCOO:
        """Return the sum of all elements, or sparse sums along axes."""
        if axis is None:
            return jnp.sum(self._inside())
        return cast("Array | BCOO", _sparsified(lambda x: x.sum(axis), self))

    def with_data(self, data: Array) -> BCOO:
        """Return the array with other elements at the same indices."""
        return BCOO.tree_unflatten(self._sizes, (data, self.indices))

    def _inside(self) -> Array:
        """Return the elements, 0 for padding."""
        sizes = jnp.array(self._sizes[: self.n_sparse], self.indices.dtype)
        inside = jnp.all((self.indices >= 0) & (self.indices < sizes), -1)
        inside = inside.reshape(*inside.shape, *[1] * self.n_dense)
        return jnp.where(inside, self.data, 0)

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __mul__(self, other: ArrayLike | BCOO) -> BCOO:
        if isinstance(other, BCOO):
            return cast(BCOO, _sparsified(operator.mul, self, other))
        if jnp.ndim(other) == 0:
            return self.with_data(self.data * other)
        return self.with_data(bcoo_multiply_dense(self, jnp.asarray(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: ArrayLike) -> BCOO:
        return cast(BCOO, _sparsified(operator.truediv, self, other))

    def __pow__(self, exponent: int) -> BCOO:
        return cast(BCOO, _sparsified(lambda x: x**exponent, self))

    def __getitem__(self, index: object) -> BCOO:
        return cast(BCOO, _sparsified(lambda x: x[index], self))

    def reshape(self, *shape: int | Sequence[int]) -> BCOO:
        """Return the array in another shape, without batch and dense axes."""
        return cast(BCOO, _sparsified(lambda x: x.reshape(*shape), self))

    def __add__(self, other: BCOO) -> BCOO:
        if not isinstance(other, BCOO):
            return NotImplemented
        if other.shape != self.shape or other.n_batch != self.n_batch:
            raise IllTyped("sparse arrays are added of one shape", repr(self), repr(other))
        n = self.n_batch
        dtype = jnp.result_type(self.data, other.data)
        data = jnp.concatenate([x.data.astype(dtype) for x in (self, other)], n)
        indices = jnp.concatenate([self.indices, other.indices], n)
        return BCOO((data, indices), shape=self.shape)

    def __sub__(self, other: BCOO) -> BCOO:
        return self + -other

    def __matmul__(self, other: ArrayLike | BCOO) -> Array | BCOO:
        if isinstance(other, BCOO):
            return _sparse_product(self, other)
        return _product(self, jnp.asarray(other))

    def __rmatmul__(self, other: ArrayLike) -> Array:
        left = jnp.asarray(other)
        flipped = self if self._matrix_rank() == 1 else _swapped(self)
        found = _product(flipped, left if left.ndim == 1 else jnp.swapaxes(left, -1, -2))
        return found if left.ndim == 1 or self._matrix_rank() == 1 else jnp.swapaxes(found, -1, -2)

    # An operator of an array with this one is this one's.
    __array_priority__: Final = 1000

    def _matrix_rank(self) -> int:
        if self.n_dense or self.n_sparse not in (1, 2):
            expected = "vectors or matrices of sparse axes"
            raise IllTyped("products are of sparse vectors or matrices", expected, repr(self))
        return self.n_sparse


def _of(module: str) -> ModuleType:
    """Return a module that is made of this one, and is imported at its first use."""
    return import_module(f"effax.experimental.sparse.{module}")


def _sparsified(f: Callable[..., object], *args: object) -> PyTree:
    return cast(PyTree, _of("transform").sparsify(f)(*args))


def is_sparse(x: object) -> bool:
    """Return whether a value is a sparse array."""
    return isinstance(x, BCOO)


def each(f: Callable[..., Any], n_batch: int, *args: object) -> Any:
    """Apply a function to each batch element."""
    for _ in range(n_batch):
        f = vmap(f)
    return f(*args)


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = "int32",
) -> BCOO:
    """Return the sparse array of the nonzero elements of an array.

    Args:
        mat: array.
        nse: number of specified elements, those beyond it are left out; by default that of the
            nonzero ones, which takes a known value.
        n_batch: number of leading axes that are a batch.
        n_dense: number of trailing axes that are dense.
        index_dtype: dtype of the indices.

    Raises:
        BadArgument: more batch and dense axes than there are.
        ConcretizationError: the array is traced and ``nse`` is None.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.array([0.0, 5.0])).data
    Array([5.], dtype=float32)
    """
    x = jnp.asarray(mat)
    n_sparse = x.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        found = f"{n_batch} batch and {n_dense} dense axes of {x.ndim}"
        raise BadArgument("there are fewer axes", "n_batch + n_dense up to the axes", found)
    used = jnp.any(x != 0, tuple(range(x.ndim - n_dense, x.ndim)))
    if nse is None:
        counts = jnp.sum(used, tuple(range(n_batch, used.ndim)))
        nse = int(jnp.max(counts, initial=0))
    sizes = x.shape[n_batch : n_batch + n_sparse]

    def one(x: Array, used: Array) -> Parts:
        if not sizes:
            first = (jnp.arange(nse) == 0).reshape(nse, *[1] * x.ndim)
            return jnp.where(first, x, 0), jnp.zeros((nse, 0), index_dtype)
        indices = jnp.stack(jnp.nonzero(used, size=nse, fill_value=sizes), -1)
        return _taken(x, indices.astype(index_dtype)), indices.astype(index_dtype)

    data, indices = each(one, n_batch, x, used)
    return BCOO((data, indices), shape=x.shape)


def _taken(x: Array, indices: Array) -> Array:
    """Return the elements at indices; 0 for padding."""
    if not indices.shape[-1]:
        return jnp.broadcast_to(x, (indices.shape[0], *x.shape))
    places = tuple([indices[..., i] for i in range(indices.shape[-1])])
    return x.at[places].get(mode="fill", fill_value=0)


def bcoo_todense(mat: BCOO) -> Array:
    """Return the dense array.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    sizes = mat.shape[mat.n_batch :]

    def one(data: Array, indices: Array) -> Array:
        if not indices.shape[-1]:
            return jnp.sum(data, 0)
        places = tuple([indices[:, i] for i in range(indices.shape[-1])])
        return jnp.zeros(sizes, data.dtype).at[places].add(data, mode="drop")

    return cast(Array, each(one, mat.n_batch, mat.data, mat.indices))


def todense(mat: BCOO | ArrayLike) -> Array:
    """Return the dense array of a sparse or dense one.

    >>> from effax.experimental import sparse
    >>> sparse.todense(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if isinstance(mat, BCOO):
        return bcoo_todense(mat)
    x = jnp.asarray(mat)
    if current_trace() is None:
        return x
    # Marked for `sparsify`, whose program may run on a sparse array.
    return bind1(Jit(program_of(lambda x: [x], TODENSE, x.type), TODENSE), x)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Return the array with its axes in another order, inside of batch, sparse and dense axes.

    Raises:
        BadArgument: axes of one kind become axes of another.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    order = list(plain_axes(list(permutation), mat.ndim, "bcoo_transpose"))
    cuts = (0, mat.n_batch, mat.n_batch + mat.n_sparse, mat.ndim)
    parts = [order[a:b] for a, b in pairwise(cuts)]
    wanted = [list(range(a, b)) for a, b in pairwise(cuts)]
    if [sorted(p) for p in parts] != wanted:
        expected = f"a permutation of each of {wanted}"
        raise BadArgument("axes of a kind stay of it", expected, str(list(permutation)))
    batch, sparse, dense = parts
    n, first = mat.n_batch, mat.n_sparse - 1
    indices = jnp.transpose(mat.indices, (*batch, n, n + 1))[..., [i - n for i in sparse]]
    data = jnp.transpose(mat.data, (*batch, n, *[i - first for i in dense]))
    return BCOO((data, indices), shape=[mat.shape[i] for i in order])


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the elements of the product of a sparse array and a dense one, elementwise.

    Raises:
        IllTyped: the dense array does not broadcast to the shape.

    >>> from effax.experimental import sparse
    >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    whole = jnp.broadcast_to(jnp.asarray(v), sp_mat.shape)
    return sp_mat.data * cast(Array, each(_taken, sp_mat.n_batch, whole, sp_mat.indices))


def _swapped(mat: BCOO) -> BCOO:
    """Return the transposes of sparse matrices."""
    n = mat.n_batch
    return bcoo_transpose(mat, permutation=(*range(n), n + 1, n))


def _product(mat: BCOO, x: Array) -> Array:
    """Return the product of a sparse matrix or vector and a dense array."""
    rank = mat._matrix_rank()
    if x.ndim < 1 or x.shape[-2 if x.ndim > 1 else -1] != mat.shape[-1]:
        raise IllTyped("the operands of a product do not fit", repr(mat), str(x.type))
    rows = mat.shape[-2] if rank == 2 else 1

    def one(data: Array, indices: Array, x: Array) -> Array:
        scale = data.reshape(-1, *[1] * (x.ndim - 1))
        terms = scale * _taken(x, indices[:, -1:])
        at = indices[:, 0] if rank == 2 else jnp.zeros(indices.shape[0], indices.dtype)
        found = jnp.zeros((rows, *x.shape[1:]), terms.dtype).at[at].add(terms, mode="drop")
        return found if rank == 2 else found[0]

    n = mat.n_batch
    if x.ndim > 2:
        x = jnp.broadcast_to(x, (*mat.shape[:n], *x.shape[-2:]))
        return cast(Array, each(one, n, mat.data, mat.indices, x))
    return cast(Array, each(lambda d, i: one(d, i, x), n, mat.data, mat.indices))


def _sparse_product(a: BCOO, b: BCOO) -> BCOO:
    """Return the product of sparse matrices: an element for each pair of elements."""
    if (a._matrix_rank(), b._matrix_rank()) != (2, 2) or a.n_batch != b.n_batch:
        raise IllTyped("sparse products are of matrices of one batch", repr(a), repr(b))
    if a.shape[-1] != b.shape[-2]:
        raise IllTyped("the operands of a product do not fit", repr(a), repr(b))
    rows, columns = a.shape[-2], b.shape[-1]

    def one(x: Array, i: Array, y: Array, j: Array) -> Parts:
        meet = (i[:, None, 1] == j[None, :, 0]) & (i[:, None, 1] < a.shape[-1])
        data = jnp.where(meet, x[:, None] * y, 0).reshape(-1)
        at = jnp.where(meet, i[:, None, 0], rows), jnp.where(meet, j[None, :, 1], columns)
        return data, jnp.stack([k.reshape(-1) for k in at], -1)

    data, indices = each(one, a.n_batch, a.data, a.indices, b.data, b.indices)
    return BCOO((data, indices), shape=(*a.shape[:-1], columns))
