"""Functions of arrays by family, each applied to empty, zero-dimensional and narrow arrays."""

# ruff: noqa: B023, PLC3002, PLW0108  # tables of small functions, and output

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

import effax
import effax.numpy as jnp
from effax import lax

jax: Any = effax
xnp: Any = jnp
xlax: Any = lax
Function = Callable[..., Any]

SHAPES: Final = (
    (), (0,), (1,), (3,), (0, 3), (3, 0), (2, 3), (2, 0, 3), (1, 2, 1, 2, 1, 1, 1, 2),
)  # fmt: skip
INTS: Final = (
    "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32",
    "int64", "uint64",
)  # fmt: skip
NARROW_FLOATS: Final = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip
FLOATS: Final = ("bfloat16", "float16", "float32", "float64")
COMPLEX: Final = ("complex64", "complex128")
DTYPES: Final = ("bool", *INTS, *NARROW_FLOATS, *FLOATS, *COMPLEX)


class Case(NamedTuple):
    """A function, and the shape and dtype of its first argument, of which the others are made."""

    name: str
    function: Function
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"

    def argument(self) -> np.ndarray:
        """Return small positive numbers, of a dtype that buffers support."""
        n = int(np.prod(self.shape))
        return (np.arange(n).reshape(self.shape) % 3 + 1).astype(np.int8)

    def run(self, x: Any) -> Any:
        """Apply the function in the dtype of the case; results are of dtypes that buffers have."""
        return jax.tree.map(self._shown, self.function(x.astype(self.dtype)))

    def _shown(self, y: Any) -> Any:
        y = xnp.asarray(y)
        return (
            y.astype("float32")
            if y.dtype.itemsize == 1 and y.dtype.kind not in "?bui"
            else (y.astype("int32") if y.dtype.name in ("int2", "uint2", "int4", "uint4") else y)
        )


def _named(module: Any, names: str) -> dict[str, Function]:
    return {name: getattr(module, name) for name in names.split()}


UNARY: Final = _named(
    xlax,
    "abs acos acosh asin asinh atan atanh bitwise_not cbrt ceil conj cos cosh erf erf_inv erfc exp "
    "exp2 expm1 floor imag is_finite log log1p logistic neg population_count real reciprocal round "
    "rsqrt sign sin sinh sqrt square tan tanh",
) | {
    "integer_pow": lambda x: xlax.integer_pow(x, 3),
    "negative pow": lambda x: xlax.integer_pow(x, -2),
    "nan_to_num": xnp.nan_to_num,
    "softmax": jax.nn.softmax,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "angle": xnp.angle,
    "sinc": xnp.sinc,
    "i0": lambda x: xnp.i0(x) if hasattr(jnp, "i0") else x,
}
BINARY: Final[dict[str, Function]] = {
    name: (lambda f: lambda x: f(x, xnp.flip(x)))(f)
    for name, f in (
        _named(
            xlax,
            "add atan2 bitwise_and bitwise_or bitwise_xor div eq ge gt le lt max min mul ne "
            "nextafter pow rem shift_left shift_right_arithmetic shift_right_logical sub",
        )
        | _named(
            xnp,
            "gcd lcm hypot logaddexp floor_divide divmod fmod heaviside ldexp copysign power "
            "float_power true_divide left_shift right_shift remainder arctan2 maximum minimum "
            "logaddexp2 fmax fmin",
        )
    ).items()
} | {"complex": lambda x: xlax.complex(x, x), "clamp": lambda x: xlax.clamp(x, x, x)}
REDUCE: Final[dict[str, Function]] = (
    _named(
        xnp,
        "sum prod max min all any argmax argmin mean var std median ptp nansum nanmax nanmean "
        "count_nonzero average",
    )
    | {"logsumexp": jax.nn.logsumexp}
    | {
        f"{name} axis": (lambda f: lambda x: f(x, axis=-1))(getattr(xnp, name))
        for name in [
            "sum",
            "prod",
            "max",
            "min",
            "all",
            "any",
            "argmax",
            "argmin",
            "mean",
            "var",
            "cumsum",
            "cumprod",
        ]
    }
    | {
        name: (lambda f: lambda x: f(x, axis=0))(getattr(xlax, name))
        for name in ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"]
    }
    | {
        name: (lambda f: lambda x: f(x, tuple(range(x.ndim))))(getattr(xlax, name))
        for name in [
            "reduce_and",
            "reduce_or",
            "reduce_max",
            "reduce_min",
            "reduce_sum",
            "reduce_prod",
        ]
    }
    | {
        "reduce": lambda x: xlax.reduce(x, x.dtype.type(0), lambda a, b: a * b + a, (0,)),
        "window": lambda x: xlax.reduce_window(
            x, x.dtype.type(0), xlax.add, (1,) * x.ndim, (1,) * x.ndim, "VALID"
        ),
        "window max": lambda x: xlax.reduce_window(
            x, x.dtype.type(0), xlax.max, (2,) * x.ndim, (1,) * x.ndim, "SAME"
        ),
    }
)
SORT: Final[dict[str, Function]] = {
    "sort": xnp.sort,
    "argsort": xnp.argsort,
    "sort descending": lambda x: xnp.sort(x, descending=True),
    "lax.sort": lambda x: xlax.sort((x, x), num_keys=2),
    "sort_key_val": lambda x: xlax.sort_key_val(x, x),
    "sort 0": lambda x: xlax.sort(x, dimension=0),
    "top_k": lambda x: xlax.top_k(x, min(1, x.shape[-1])),
    "top_k all": lambda x: xlax.top_k(x, x.shape[-1]),
    "unique": lambda x: xnp.unique(x, size=2),
    "searchsorted": lambda x: xnp.searchsorted(xnp.ravel(x), x),
    "lexsort": lambda x: xnp.lexsort((x, x)),
    "digitize": lambda x: xnp.digitize(x, xnp.ravel(x)),
    "bincount": lambda x: xnp.bincount(xnp.ravel(x).astype("int32"), length=3),
    "nonzero": lambda x: xnp.nonzero(x, size=2),
    "percentile": lambda x: xnp.percentile(x, 50),
    "partition": lambda x: xnp.partition(x, 0),
}
SHAPE: Final[dict[str, Function]] = {
    "ravel": xnp.ravel,
    "reshape": lambda x: xnp.reshape(x, (-1, 1)) if x.size else xnp.reshape(x, (0, 7)),
    "transpose": xnp.transpose,
    "broadcast": lambda x: xnp.broadcast_to(x, (2, *x.shape)),
    "broadcast empty": lambda x: xnp.broadcast_to(x, (0, *x.shape)),
    "concatenate": lambda x: xnp.concatenate([x, x]),
    "stack": lambda x: xnp.stack([x, x]),
    "pad": lambda x: xnp.pad(x, 1),
    "pad interior": lambda x: xlax.pad(x, x.dtype.type(0), [(1, 2, 1)] * x.ndim),
    "pad negative": lambda x: xlax.pad(x, x.dtype.type(0), [(-1, 0, 0)] * x.ndim),
    "pad huge": lambda x: xlax.pad(x, x.dtype.type(0), [(-5, 6, 0)] * x.ndim),
    "flip": xnp.flip,
    "slice": lambda x: x[::2],
    "slice negative": lambda x: x[::-1],
    "slice empty": lambda x: x[1:1],
    "squeeze": xnp.squeeze,
    "tile": lambda x: xnp.tile(x, 2),
    "tile none": lambda x: xnp.tile(x, 0),
    "repeat": lambda x: xnp.repeat(x, 2),
    "roll": lambda x: xnp.roll(x, 1),
    "split": lambda x: xnp.split(x, 1),
    "iota": lambda x: xlax.broadcasted_iota(x.dtype, x.shape, 0),
    "full": lambda x: xnp.full_like(x, 1),
    "diag": xnp.diag,
    "tril": xnp.tril,
    "eye": lambda x: xnp.eye(*x.shape[:1], dtype=x.dtype),
    "meshgrid": lambda x: xnp.meshgrid(x, x),
    "linspace": lambda x: xnp.linspace(x, x, 3),
    "linspace none": lambda x: xnp.linspace(x, x, 0),
}
INDEX: Final[dict[str, Function]] = {
    "gather": lambda x: x[xnp.array([0, 1, -1])],
    "gather none": lambda x: x[xnp.zeros(0, "int32")],
    "gather rows": lambda x: x[xnp.zeros((2, 0), "int32")],
    "dynamic": lambda x: x[xnp.argmax(xnp.ones(3))],
    "dynamic_slice": lambda x: xlax.dynamic_slice(x, [1] * x.ndim, [min(1, n) for n in x.shape]),
    "dynamic_slice none": lambda x: xlax.dynamic_slice(x, [1] * x.ndim, [0] * x.ndim),
    "dynamic_update": lambda x: xlax.dynamic_update_slice(x, x, [1] * x.ndim),
    "dynamic_update none": lambda x: xlax.dynamic_update_slice(
        x, xnp.zeros((0,) * x.ndim, x.dtype), [1] * x.ndim
    ),
    "take": lambda x: xnp.take(x, xnp.array([0, 5]), axis=0),
    "take fill": lambda x: xnp.take(x, xnp.array([0, 5]), axis=0, mode="fill"),
    "take_along": lambda x: xnp.take_along_axis(x, xnp.argsort(x), -1),
    "set": lambda x: x.at[0].set(1),
    "set none": lambda x: x.at[xnp.zeros(0, "int32")].set(1),
    "add": lambda x: x.at[xnp.array([0, 0, 1])].add(1),
    "mul": lambda x: x.at[xnp.array([0, 0, 1])].multiply(2),
    "min": lambda x: x.at[xnp.array([0, 0, 1])].min(1),
    "max": lambda x: x.at[xnp.array([0, 0, 1])].max(1),
    "set rows": lambda x: x.at[..., xnp.array([0, 1])].set(1),
    "get fill": lambda x: x.at[xnp.array([0, 9])].get(mode="fill"),
    "where": lambda x: xnp.where(x > 1, x, x),
    "select_n": lambda x: xlax.select_n(x > 1, x, x),
    "select_n scalar": lambda x: xlax.select_n(xnp.asarray(True), x, x),
    "one_hot": lambda x: jax.nn.one_hot(x, 3),
    "one_hot none": lambda x: jax.nn.one_hot(x, 0),
    "segment_sum": lambda x: (
        jax.ops.segment_sum(x, xnp.zeros(x.shape[0], "int32"), 2) if hasattr(jax, "ops") else x
    ),
    "interp": lambda x: xnp.interp(x, xnp.ravel(x), xnp.ravel(x)),
}


def _contracted(x: Any, n_batch: int, wanted: str | None, sizes: tuple[int, int, int]) -> Any:
    """Contract two arrays that are made of ``x``, with batch axes and a result dtype."""
    m, k, n = sizes
    batch = (2, 3)[:n_batch]
    one = xnp.max(x) if x.size else xnp.ones((), x.dtype)
    a = xnp.broadcast_to(one, (*batch, m, k))
    b = xnp.broadcast_to(one, (*batch, k, n))
    axes = tuple(range(n_batch))
    dims = (((n_batch + 1,), (n_batch,)), (axes, axes))
    return xlax.dot_general(a + a, b + b, dims, preferred_element_type=wanted)


def _convolved(x: Any, wanted: str | None, **options: Any) -> Any:
    one = xnp.max(x) if x.size else xnp.ones((), x.dtype)
    a = xnp.broadcast_to(one, (2, 4, 6, 6))
    k = xnp.broadcast_to(one, (4, 4 // options.get("feature_group_count", 1), 3, 3))
    return xlax.conv_general_dilated(
        a + a, k, (1, 1), "SAME", preferred_element_type=wanted, **options
    )


CONTRACT: Final[dict[str, Function]] = (
    {
        "matmul": lambda x: xnp.matmul(x, xnp.transpose(x)),
        "dot": lambda x: xnp.dot(x, xnp.transpose(x)),
        "outer": lambda x: xnp.outer(x, x),
        "inner": lambda x: xnp.inner(x, x),
        "vdot": lambda x: xnp.vdot(x, x),
        "tensordot": lambda x: xnp.tensordot(x, x, 0),
        "einsum": lambda x: xnp.einsum("...i,...i", x, x),
        "kron": lambda x: xnp.kron(x, x),
        "convolve": lambda x: xnp.convolve(xnp.ravel(x), xnp.ravel(x)),
    }
    | {
        f"dot_general {n}b {sizes} {wanted}": partial(
            _contracted, n_batch=n, wanted=wanted, sizes=sizes
        )
        for n in (0, 1, 2)
        for sizes in ((2, 3, 4), (2, 0, 4), (0, 3, 4), (1, 3, 1))
        for wanted in (None, "int32", "float32", "float64")
    }
    | {
        f"conv {wanted} {options}": partial(_convolved, wanted=wanted, **options)
        for wanted in (None, "int32", "float32", "float64")
        for options in (
            {},
            {"feature_group_count": 2},
            {"batch_group_count": 2, "feature_group_count": 1},
            {"lhs_dilation": (2, 2)},
        )
    }
)


def _while(x: Any) -> Any:
    return xlax.while_loop(lambda c: xnp.any(c > 0), lambda c: c - c, x)


CONTROL: Final[dict[str, Function]] = {
    "while": _while,
    "while twice": lambda x: xlax.while_loop(
        lambda c: xnp.any(c[0] > 0), lambda c: (c[0] - c[0], c[1]), (x, x)
    ),
    "while of nothing": lambda x: xlax.while_loop(lambda c: xnp.any(x > 5), lambda c: c, ()),
    "while nested": lambda x: xlax.while_loop(lambda c: xnp.any(c > 0), _while, x),
    "fori": lambda x: xlax.fori_loop(0, 3, lambda i, c: c + c, x),
    "fori traced": lambda x: xlax.fori_loop(0, xnp.sum(x > 0), lambda i, c: c, x),
    "scan": lambda x: xlax.scan(lambda c, y: (c, y + y), (), x),
    "scan carry": lambda x: xlax.scan(lambda c, y: (c + c, None), x, None, length=2),
    "scan none": lambda x: xlax.scan(lambda c, y: (c + c, y), x, xnp.zeros((0, 2))),
    "scan both": lambda x: xlax.scan(lambda c, y: (c + y, y), x[0], x),
    "map": lambda x: xlax.map(lambda y: y + y, x),
    "cond": lambda x: xlax.cond(xnp.all(x > 1), lambda x: x, lambda x: x + x, x),
    "switch": lambda x: xlax.switch(xnp.sum(x > 1), [lambda x: x, lambda x: x + x] * 2, x),
    "switch one": lambda x: xlax.switch(xnp.sum(x > 1), [lambda x: x], x),
    "associative_scan": lambda x: xlax.associative_scan(xnp.add, x),
    "vmap while": lambda x: jax.vmap(_while)(x),
    "vmap cond": lambda x: jax.vmap(
        lambda y: xlax.cond(xnp.all(y > 1), lambda y: y, lambda y: y + y, y)
    )(x),
    "vmap scan": lambda x: jax.vmap(lambda y: xlax.scan(lambda c, _: (c + y, c), y, None, 2))(x),
    "grad while": lambda x: jax.grad(
        lambda y: xnp.sum(xlax.fori_loop(0, 2, lambda i, c: c * c, y))
    )(x),
    "grad scan": lambda x: jax.grad(
        lambda y: xnp.sum(xlax.scan(lambda c, z: (c, z * z), (), y)[1])
    )(x),
    "checkpoint": lambda x: jax.grad(lambda y: xnp.sum(jax.checkpoint(lambda z: z * z)(y)))(x),
    "ref": lambda x: _through_ref(x),
    "ref loop": lambda x: xlax.fori_loop(0, 2, lambda i, c: _through_ref(c), x),
    "callback": lambda x: jax.pure_callback(
        lambda y: np.asarray(y), jax.ShapeDtypeStruct(x.shape, x.dtype), x
    ),
    "jit": lambda x: jax.jit(lambda y: y + y)(x),
}


def _through_ref(x: Any) -> Any:
    r = jax.new_ref(x)
    r[...] = r[...] + x
    r.addupdate(x)
    return r[...]


FFT: Final[dict[str, Function]] = {
    name: (lambda f: lambda x: f(x))(getattr(xnp.fft, name))
    for name in [
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "hfft",
        "ihfft",
        "fft2",
        "rfft2",
        "fftn",
        "ifftn",
        "fftshift",
    ]
}
LINALG: Final[dict[str, Function]] = {
    name: (lambda f: lambda x: f(_square(x)))(getattr(xnp.linalg, name))
    for name in [
        "cholesky",
        "det",
        "eigh",
        "eigvalsh",
        "inv",
        "pinv",
        "qr",
        "svd",
        "slogdet",
        "matrix_rank",
        "norm",
        "cond",
    ]
} | {
    "solve": lambda x: xnp.linalg.solve(_square(x), _square(x)),
    "qr wide": xnp.linalg.qr,
    "svd wide": xnp.linalg.svd,
    "norm": xnp.linalg.norm,
    "matrix_power": lambda x: xnp.linalg.matrix_power(_square(x), 3),
    "lstsq": lambda x: xnp.linalg.pinv(x),
    "cross": lambda x: xnp.cross(x, x),
}


def _square(x: Any) -> Any:
    n = x.shape[-1]
    return xnp.broadcast_to(xnp.eye(n, dtype=x.dtype), (*x.shape[:-1], n, n)) + x[..., None, :]


CONVERT: Final[dict[str, Function]] = {
    f"to {dtype}": partial(lambda x, dtype: x.astype(dtype), dtype=dtype) for dtype in DTYPES
} | {
    f"bits to {dtype}": partial(xlax.bitcast_convert_type, new_dtype=dtype)
    for dtype in (*INTS, *FLOATS, "float8_e4m3fn")
}
RANDOM: Final[dict[str, Function]] = {
    name: partial(lambda x, f: f(jax.random.key(0), x.shape, x.dtype), f=getattr(jax.random, name))
    for name in [
        "bits",
        "uniform",
        "normal",
        "exponential",
        "gumbel",
        "cauchy",
        "laplace",
        "logistic",
    ]
} | {
    "randint": lambda x: jax.random.randint(jax.random.key(0), x.shape, 0, 3, x.dtype),
    "permutation": lambda x: jax.random.permutation(jax.random.key(0), x),
    "choice": lambda x: jax.random.choice(jax.random.key(0), x, (2,)),
    "categorical": lambda x: jax.random.categorical(jax.random.key(0), x),
    "bernoulli": lambda x: jax.random.bernoulli(jax.random.key(0), 0.5, x.shape),
    "split": lambda x: jax.random.key_data(jax.random.split(jax.random.key(0), x.shape)),
}
FAMILIES: Final[dict[str, dict[str, Function]]] = {
    "unary": UNARY,
    "binary": BINARY,
    "reduce": REDUCE,
    "sort": SORT,
    "shape": SHAPE,
    "index": INDEX,
    "contract": CONTRACT,
    "control": CONTROL,
    "fft": FFT,
    "linalg": LINALG,
    "convert": CONVERT,
    "random": RANDOM,
}


def cases_of(family: str) -> Iterator[Case]:
    """Yield the cases of a family."""
    shapes = ((3,),) if family == "contract" else SHAPES
    for name, function in FAMILIES[family].items():
        made_of_one = family == "contract" and name.startswith(("dot_general", "conv "))
        for shape in shapes if made_of_one else SHAPES:
            for dtype in DTYPES:
                yield Case(name, function, shape, dtype)
