"""Calls of every public function with derivatives, and the reason for each without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import effax.numpy as jnp
from effax import image, lax, nn, random

Function = Callable[..., Any]


class Call(NamedTuple):
    """A function of floating arrays, which are all differentiated, and a point where it is smooth.

    ``modes`` are those in which it has derivatives, ``batched`` says whether it can be batched,
    ``order`` is the highest of its derivatives, and ``compiled`` is False where they compile long.
    """

    function: Function
    args: tuple[np.ndarray, ...]
    modes: tuple[str, ...] = ("fwd", "rev")
    batched: bool = True
    order: int = 2
    compiled: bool = True


Table = dict[str, Call]


def point(*sizes: int, seed: int = 0) -> np.ndarray:
    """Return numbers of both signs, none near zero, an integer, a half, or equal to another."""
    rng = np.random.default_rng((seed, *sizes))
    count = int(np.prod(sizes))
    steps = (rng.permutation(count) - count // 2) * 1.1
    return np.asarray(steps + rng.uniform(0.62, 0.68, count)).reshape(sizes)


X, Y, Z = point(3), point(3, seed=1), point(3, seed=2)
M, N = point(2, 3), point(2, 3, seed=1)
A, B = point(3, 3), point(3, 3, seed=1)
W = point(2, seed=3)
P, Q = np.array([0.4, 1.3, 2.2]), np.array([1.7, 0.6, 0.9])
U = np.array([-0.6, 0.2, 0.7])
S = np.asarray(0.7)
GAPS = np.array([0.7, np.nan, -0.4, 1.9])
I = np.array([2, 0, 0], np.int32)  # noqa: E741
MASK = np.array([True, False, True])


def on(names: str, library: Any, *args: np.ndarray) -> Table:
    """Return calls of the functions of these names on these arguments."""
    return {name: Call(getattr(library, name), args) for name in names.split()}


def but(function: Function, *fixed: Any, **options: Any) -> Function:
    """Return the function with its last arguments bound."""
    return lambda *xs: function(*xs, *fixed, **options)


def several(library: Any, calls: dict[str, tuple[Any, ...]]) -> Table:
    """Calls ``name: (arrays..., [the other arguments])``; a dict in the end holds options."""
    table: Table = {}
    for key, (*args, rest) in calls.items():
        named = bool(rest) and isinstance(rest[-1], dict)
        fixed, options = (rest[:-1], rest[-1]) if named else (rest, {})
        table[key] = Call(but(getattr(library, key.split()[0]), *fixed, **options), tuple(args))
    return table


def listed(library: Any, names: str, *args: np.ndarray) -> Table:
    """Return calls of functions that take one list of arrays."""
    return {name: Call(_of_list(getattr(library, name)), args) for name in names.split()}


def _of_list(function: Function) -> Function:
    return lambda *xs: function(list(xs))


def _beside_nan(function: Function) -> Function:
    return lambda x: function(jnp.append(x, jnp.nan))


NUMPY: Table = {
    **on(
        "abs absolute angle arcsinh arctan around array asarray asinh astype atan atleast_1d "
        "atleast_2d atleast_3d average ceil cbrt conj conjugate copy cos cosh cumprod cumsum "
        "deg2rad degrees diag diagflat diff exp exp2 expm1 fabs fix flip floor imag max amax amin "
        "mean median min modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian nanmin "
        "nanprod nanstd nansum nanvar negative positive prod ptp rad2deg radians ravel real "
        "reciprocal rint round sign sin sinc sinh sort square std sum tan tanh transpose trunc "
        "unstack var",
        jnp,
        X,
    ),
    **on("log log10 log1p log2 sqrt", jnp, P),
    **on("arccosh acosh", jnp, P + 1),
    **on("arccos arcsin arctanh acos asin atanh", jnp, U),
    **on(
        "add subtract multiply divide true_divide maximum minimum fmax fmin arctan2 atan2 hypot "
        "logaddexp logaddexp2 mod remainder fmod floor_divide divmod copysign heaviside nextafter "
        "dot inner outer vdot vecdot kron cross broadcast_arrays append meshgrid",
        jnp,
        X,
        Y,
    ),
    **on("power pow float_power", jnp, P, Y),
    **on("diagonal fliplr flipud matrix_transpose permute_dims rot90 squeeze", jnp, M),
    **on("trace tril triu", jnp, M),
    **on("matmul", jnp, M, A),
    **on("matvec", jnp, M, X),
    **on("vecmat", jnp, X, A),
    **listed(jnp, "column_stack concat concatenate dstack hstack stack vstack", X, Y),
    **several(
        jnp,
        {
            "array_split": (X, [2]),
            "astype": (X, [float]),
            "average weighted": (X, [{"weights": P}]),
            "broadcast_to": (X, [(2, 3)]),
            "clip": (X, [-0.5, 0.5]),
            "convolve": (X, W, []),
            "convolve same": (W, X, ["same"]),
            "correlate": (X, W, []),
            "cumsum along": (M, [1]),
            "expand_dims": (X, [0]),
            "hsplit": (M, [3]),
            "interp": (U, np.array([-1.0, 0.1, 1.0]), Y, []),
            "interp of a period": (X, np.array([0.3, 1.5, 1.1]), Y, [None, None, 2.0]),
            "interp beyond": (X, U, Y, ["extrapolate", 3.0]),
            "ldexp": (X, [I]),
            "linspace": (X, Y, [4]),
            "logspace": (U, P, [3]),
            "max along": (M, [0]),
            "moveaxis": (M, [0, 1]),
            "nanquantile": (GAPS[[0, 2, 3]], [0.3]),
            "pad": (M, [1, {"mode": "reflect"}]),
            "percentile": (X, [30.0]),
            "power of an integer": (X, [3]),
            "quantile": (M, [0.3, 1]),
            "repeat": (X, [2]),
            "reshape": (M, [(3, 2)]),
            "roll": (M, [1, 0]),
            "sort along": (M, [0]),
            "split": (X, [3]),
            "swapaxes": (M, [0, 1]),
            "take": (X, [I]),
            "take_along_axis": (X, [I, 0]),
            "tensordot": (M, A, [1]),
            "tile": (X, [2]),
            "top_k": (X, [2]),
            "top_k smallest": (X, [2, {"mode": "smallest"}]),
            "var with correction": (M, [0, {"ddof": 1}]),
            "vsplit": (M, [2]),
        },
    ),
    "einsum": Call(partial(jnp.einsum, "ij,jk,k->i"), (M, A, X)),
    "extract": Call(partial(jnp.extract, MASK), (X,)),
    "full": Call(partial(jnp.full, (2,)), (S,)),
    "full_like": Call(partial(jnp.full_like, X), (S,)),
    "select": Call(lambda x, y: jnp.select([MASK, ~MASK], [x, y]), (X, Y)),
    "vectorize": Call(jnp.vectorize(jnp.dot, signature="(n),(n)->()"), (M, X)),
    "where": Call(partial(jnp.where, MASK), (X, Y)),
    **{
        f"{name} beside nan": Call(_beside_nan(getattr(jnp, name)), (X,))
        for name in ("nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum")
    },
}


def of_symmetric(function: Function) -> Function:
    """Return the function composed with a map of matrices to positive definite ones."""
    return lambda a: function(a @ jnp.matrix_transpose(a) + 2 * jnp.eye(3))


NUMPY |= {
    "polyfit": Call(lambda x, y: jnp.polyfit(x, y, 1), (X, Y), compiled=False),
    "roots": Call(lambda p: jnp.roots(p, strip_zeros=False), (P,), compiled=False),
}

LINALG: Table = {
    **on("norm vector_norm matrix_norm trace diagonal matrix_transpose", jnp.linalg, M),
    **on("pinv svdvals", jnp.linalg, M),
    "lstsq": Call(lambda a, b: jnp.linalg.lstsq(a, b)[:2], (M.T, X), compiled=False),
    "tensorinv": Call(lambda a: jnp.linalg.tensorinv(a, 1), (A,), compiled=False),
    "tensorsolve": Call(jnp.linalg.tensorsolve, (A, X), compiled=False),
    **on("cross outer vecdot", jnp.linalg, X, Y),
    **on("matmul", jnp.linalg, A, B),
    **on("cond det inv qr slogdet svd", jnp.linalg, A),
    **{n: Call(getattr(jnp.linalg, n), (A,), compiled=False) for n in ("eig", "eigvals")},
    **on("solve", jnp.linalg, A, X),
    **{
        name: Call(of_symmetric(getattr(jnp.linalg, name)), (A,))
        for name in ("cholesky", "eigh", "eigvalsh")
    },
    **several(
        jnp.linalg,
        {
            "cond of order 1": (A, [1]),
            "det of more rows": (point(4, 4), []),
            "matrix_power": (A, [3]),
            "matrix_power of the inverse": (A, [-2]),
            "norm nuclear": (M, ["nuc"]),
            "norm of order 2": (M, [2]),
            "norm of order 3": (X, [3]),
            "norm of order inf": (M, [np.inf]),
            "qr of more rows": (M.T, []),
            "qr of more columns": (M, []),
            "solve many": (A, M.T, []),
            "svd of more rows": (M.T, [False]),
            "tensordot": (M, A, [{"axes": 1}]),
        },
    ),
    **listed(jnp.linalg, "multi_dot", M, A, B),
}

FFT: Table = {
    **on("fft ifft rfft irfft ihfft hfft fftn ifftn fftshift ifftshift", jnp.fft, point(4)),
    **on("fft2 ifft2 rfft2 irfft2 rfftn irfftn", jnp.fft, M),
    **several(
        jnp.fft,
        {
            "fft of another length": (M, [3, 0, "ortho"]),
            "irfft of an odd length": (X, [5]),
            "irfftn of four axes": (point(2, 1, 3, 2), []),
            "rfftn of four axes": (point(2, 1, 3, 2), []),
        },
    ),
}

ROWS = (((1,), (0,)), ((), ()))


def solved(a: Any, b: Any) -> Any:
    """Return the solution of (1 + a/10) x = b, by iteration."""
    system = jnp.eye(3) + a / 10

    def iterate(matvec: Function, b: Any) -> Any:
        return lax.fori_loop(0, 40, lambda i, x: x + (b - matvec(x)) * 0.9, b)

    return lax.custom_linear_solve(lambda x: system @ x, b, iterate, iterate)


def rooted(x: Any) -> Any:
    """Return y with y³ + y = x, by Newton's method."""

    def newton(f: Function, y: Any) -> Any:
        return lax.fori_loop(0, 20, lambda i, y: y - f(y) / (3 * y * y + 1), y)

    return lax.custom_root(lambda y: y**3 + y - x, x, newton, lambda g, b: b / g(jnp.ones_like(b)))


STARTS = np.array([[1], [0]], np.int32)
SCATTERS = ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")
SLIDING = lax.ScatterDimensionNumbers((1,), (), (0,))


def scattered(name: str) -> Call:
    """Return a call of a scatter of two windows that overlap."""
    function = getattr(lax, name)
    return Call(lambda x, u: function(x, STARTS, u, SLIDING), (X, point(2, 2, seed=4)))


LAX: Table = {
    **on(
        "abs asinh atan cbrt ceil conj cos cosh cumlogsumexp cummax cummin cumprod cumsum erf "
        "erfc exp exp2 expm1 floor logistic neg reciprocal round sign sin sinh sort square "
        "tan tanh zeros_like zeros_like_array unstack one_minus_square optimization_barrier stage",
        lax,
        X,
    ),
    "polynomial": Call(lambda x, c: lax.polynomial(x, [c, 2.0, 3.0], unroll=2), (X, Y)),
    "composite": Call(lax.composite(lambda x, y: x * jnp.sin(y), "my.product"), (X, Y)),
    "platform_dependent": Call(partial(lax.platform_dependent, default=lambda x: x * x), (X,)),
    "conv_general_dilated_local": Call(
        lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,)),
        (point(1, 2, 3), point(3, 4, 2)),
    ),
    "conv_general_dilated_patches": Call(
        lambda x: lax.conv_general_dilated_patches(x, (2,), (1,), [(1, 0)]), (point(1, 2, 3),)
    ),
    "ragged_dot": Call(
        lambda x, w: lax.ragged_dot(x, w, np.array([1, 0, 2])), (point(4, 2), point(3, 2, 2))
    ),
    "ragged_dot_general": Call(
        lambda x, w: lax.ragged_dot_general(
            x,
            w,
            np.array([1, 2]),
            lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ()),
        ),
        (point(2, 4), point(4, 2)),
    ),
    "scaled_dot": Call(
        lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type=float),
        (point(2, 4), point(4, 2), point(2, 2)),
    ),
    "fft": Call(lambda x: lax.fft(x, "RFFT", (3,)), (X,)),
    **on("log log1p log2 rsqrt sqrt", lax, P),
    **on("bessel_i0e bessel_i1e digamma lgamma", lax, P),
    "polygamma": Call(partial(lax.polygamma, 2.0), (P,), compiled=False),
    "zeta": Call(partial(lax.zeta, 2.5), (P,), compiled=False),
    "zeta of its exponent": Call(lambda x: lax.zeta(x, 0.5), (P + 1,), order=1, compiled=False),
    "igamma": Call(lax.igamma, (P, Q), order=1, compiled=False),
    "igammac": Call(lax.igammac, (P, Q), order=1, compiled=False),
    "igamma_grad_a": Call(partial(lax.igamma_grad_a, 2.5), (P,), order=1, compiled=False),
    "betainc": Call(lax.betainc, (P, Q, Q / 2), order=1, compiled=False),
    **on("acosh", lax, P + 1),
    **on("acos asin atanh erf_inv", lax, U),
    **on("add sub mul div max min atan2 nextafter rem complex", lax, X, Y),
    **on("pow", lax, P, Y),
    **on("dot", lax, M, A),
    **on("batch_matmul", lax, point(2, 2, 3), point(2, 3, 2)),
    **on("clamp", lax, X - 1, Y, X + 1),
    **several(
        lax,
        {
            "approx_max_k": (X, [2]),
            "approx_min_k": (X, [2]),
            "broadcast": (X, [(2,)]),
            "broadcast_like": (X, M, []),
            "broadcast_to_rank": (X, [2]),
            "index_take": (M, [[I % 2], (0,)]),
            "broadcast_in_dim": (X, [(2, 3), (1,)]),
            "collapse": (M, [0]),
            "conv": (point(1, 2, 5), point(3, 2, 2), [(2,), "SAME"]),
            "conv_general_dilated": (
                point(2, 4, 2),
                point(2, 2, 3, seed=1),
                [(1,), [(1, 0)], (2,), (1,), ("NHC", "HIO", "NHC")],
            ),
            "conv_transpose": (point(1, 3, 2), point(2, 2, 2), [(2,), "SAME"]),
            "conv_with_general_padding": (
                point(1, 2, 3),
                point(3, 2, 2),
                [(1,), [(1, 1)], (1,), (2,)],
            ),
            "convert_element_type": (X, [float]),
            "dot_general": (M, A, [ROWS]),
            "dynamic_index_in_dim": (M, [1, 1]),
            "dynamic_slice": (M, [(0, 1), (2, 2)]),
            "dynamic_slice_in_dim": (M, [1, 2, 1]),
            "dynamic_update_index_in_dim": (M, X, [1, 0]),
            "dynamic_update_slice": (M, point(1, 2), [(1, 1)]),
            "dynamic_update_slice_in_dim": (M, point(1, 3), [1, 0]),
            "expand_dims": (X, [(0,)]),
            "full_like": (X, S, []),
            "gather": (X, [STARTS, lax.GatherDimensionNumbers((1,), (), (0,)), (2,)]),
            "index_in_dim": (M, [1, 1]),
            "integer_pow": (X, [3]),
            "integer_pow down": (X, [-2]),
            "pad": (M, S, [((1, 0, 1), (-1, 2, 0))]),
            "reduce_max": (M, [(0,)]),
            "reduce_min": (M, [(0,)]),
            "reduce_prod": (M, [(1,)]),
            "reduce_sum": (M, [(1,)]),
            "reshape": (M, [(3, 2)]),
            "rev": (M, [(0,)]),
            "slice": (M, [(0, 1), (2, 3)]),
            "slice_in_dim": (M, [0, 3, 2, 1]),
            "sort_key_val": (X, Y, []),
            "split": (X, [(1, 2)]),
            "squeeze": (point(1, 3), [(0,)]),
            "tile": (X, [(2,)]),
            "top_k": (X, [2]),
            "transpose": (M, [(1, 0)]),
        },
    ),
    "associative_scan": Call(lambda x: lax.associative_scan(jnp.multiply, x), (X,)),
    "custom_linear_solve": Call(solved, (A, X)),
    "custom_root": Call(rooted, (X,)),
    "reduce": Call(lambda m: lax.reduce(m, 1.0, lambda a, b: a * b, (1,)), (M,)),
    "reduce_window": Call(
        lambda m: lax.reduce_window(m, 0.0, lax.add, (2, 2), (1, 2), "SAME"), (M,)
    ),
    "concatenate": Call(lambda x, y: lax.concatenate([x, y], 0), (X, Y)),
    "cond": Call(lambda p, x: lax.cond(p[0] > 0, jnp.sin, jnp.cos, x), (P, X)),
    "foreach": Call(lambda x: lax.foreach(x)(lambda t: jnp.sin(t) * t), (X,)),
    "fori_loop": Call(lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.sin(c), x), (X,)),
    "full": Call(lambda s: lax.full((2,), s), (S,)),
    "imag": Call(lambda x, y: lax.imag(lax.complex(x, y) * lax.complex(y, x)), (X, Y)),
    "map": Call(lambda m, x: lax.map(lambda row: row * jnp.sin(x), m), (M, X)),
    "real": Call(lambda x, y: lax.real(lax.complex(x, y) * lax.complex(x, y)), (X, Y)),
    "scan": Call(lambda x, c: lax.scan(lambda c, t: (c * t, jnp.sin(c)), c, x), (X, S)),
    **{
        f"scatter{n}": scattered(f"scatter{n}")
        for n in ("", "_add", "_sub", "_mul", "_min", "_max")
    },
    "scatter_apply": Call(
        lambda x: lax.scatter_apply(x, STARTS, jnp.sin, SLIDING, update_shape=(2, 2)), (X,)
    ),
    "select": Call(partial(lax.select, MASK), (X, Y)),
    "select_n": Call(partial(lax.select_n, I), (X, Y, Z)),
    "sort of two": Call(lambda x, y: lax.sort((x, y), num_keys=2), (X, Y)),
    "stack": Call(lambda x, y: lax.stack([x, y]), (X, Y)),
    "switch": Call(lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], x), (X,)),
    "while_loop": Call(
        lambda x: lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c * 2 + 1, x), (P,)
    ),
}

NN: Table = {
    **on(
        "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid "
        "log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax "
        "softplus sparse_plus squareplus standardize swish tanh",
        nn,
        X,
    ),
    **on("log1mexp", nn, P),
    **on("sparse_sigmoid", nn, U),
    "scaled_matmul": Call(
        partial(nn.scaled_matmul, preferred_element_type=float),
        (A[None], B[None], Q[None, :, None], P[None, :, None]),
    ),
    **on("glu", nn, point(4)),
    **on("dot_product_attention", nn, *(point(2, 1, 3, seed=i) for i in range(3))),
    **several(
        nn,
        {
            "elu of alpha": (X, S, []),
            "celu of alpha": (X, S, []),
            "gelu exact": (X, [False]),
            "leaky_relu of slope": (X, S, []),
            "logsumexp with factors": (X, [None, Q]),
            "logsumexp along": (M, [1]),
            "softmax masked": (X, [-1, MASK]),
            "log_softmax of rows": (M, [1]),
            "standardize stably": (M, [{"algorithm": "stable"}]),
        },
    ),
}

KEY = random.key(3)

RANDOM: Table = {
    "choice": Call(lambda x: random.choice(KEY, x, (4,)), (X,)),
    "double_sided_maxwell": Call(
        lambda a, b: random.double_sided_maxwell(KEY, a, b, (2,), float), (X, X)
    ),
    "lognormal": Call(lambda s: random.lognormal(KEY, s, (3,), float), (S,)),
    "multivariate_normal": Call(
        lambda m, s: random.multivariate_normal(KEY, m, s @ s.T + jnp.eye(3), (2,), float), (X, A)
    ),
    "pareto": Call(lambda b: random.pareto(KEY, b, None, float), (P,)),
    "permutation": Call(lambda x: random.permutation(KEY, x), (X,)),
    "rayleigh": Call(lambda s: random.rayleigh(KEY, s, None, float), (P,)),
    "triangular": Call(lambda a, b: random.triangular(KEY, a - 1, a, a + b, None, float), (X, P)),
    "truncated_normal": Call(
        lambda a, b: random.truncated_normal(KEY, a, b, (3,), float), (S - 2, S + 1)
    ),
    "uniform": Call(lambda a, b: random.uniform(KEY, (3,), float, a, b), (X, X + P)),
    "wald": Call(lambda m: random.wald(KEY, m, None, float), (P,)),
    "weibull_min": Call(lambda s, c: random.weibull_min(KEY, s, c, (3,), float), (X, P)),
}


def reasons(given: dict[str, str]) -> dict[str, str]:
    """Return the reason of each name, from the names of each reason."""
    return {name: reason for reason, names in given.items() for name in names.split()}


EXACT = "it returns or takes integers or booleans"
CREATES = "it has no array operands"
DESCRIBES = "it concerns shapes and dtypes"
ALONG = "it runs along a named axis: tests/unit/api/test_collectives.py"

WITHOUT: dict[str, dict[str, str]] = {
    "numpy": reasons(
        {
            EXACT: "all allclose any argmax argmin argsort argwhere array_equal array_equiv "
            "bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
            "bitwise_or bitwise_right_shift bitwise_xor count_nonzero digitize equal flatnonzero "
            "gcd greater greater_equal invert isclose iscomplex isfinite isin isinf isnan isneginf "
            "isposinf isreal lcm left_shift less less_equal lexsort logical_and logical_not "
            "logical_or logical_xor nanargmax nanargmin nonzero not_equal ravel_multi_index "
            "right_shift searchsorted signbit unique unravel_index",
            CREATES: "arange diag_indices empty empty_like eye identity indices ix_ ones ones_like "
            "tri tril_indices triu_indices zeros zeros_like",
            DESCRIBES: "__array_namespace_info__ broadcast_shapes can_cast einsum_path iinfo "
            "iscomplexobj isdtype isrealobj isscalar issubdtype ndim promote_types result_type "
            "shape size",
        }
    ),
    "numpy.linalg": reasons({EXACT: "matrix_rank"}),
    "numpy.fft": reasons({CREATES: "fftfreq rfftfreq"}),
    "lax": reasons(
        {
            EXACT: "argmax argmin bitcast_convert_type bitwise_and bitwise_not bitwise_or "
            "bitwise_xor clz eq ge gt is_finite le lt mulhi ne population_count reduce_and "
            "reduce_or reduce_xor rng_bit_generator shift_left shift_right_arithmetic "
            "shift_right_logical",
            CREATES: "after_all broadcasted_iota create_token empty iota rng_uniform dce_sink",
            DESCRIBES: "broadcast_shapes conv_dimension_numbers conv_general_permutations "
            "conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple ds dslice "
            "padtype_to_pads reduce_window_shape_tuple shape_as_value",
            "its derivative is rounded": "reduce_precision",
            "its derivative is 0 by definition": "stop_gradient",
            "its derivative is not available": "random_gamma_grad",
            "it concerns placements": "with_sharding_constraint",
            ALONG: "all_gather all_to_all axis_index axis_size pargmax pargmin pbroadcast pcast "
            "pmax pmean pmin "
            "ppermute pshuffle psum psum_scatter pswapaxes pvary "
            "ragged_all_to_all",
        }
    ),
    "image": {},
    "nn": reasons(
        {
            EXACT: "one_hot",
            DESCRIBES: "get_scaled_dot_general_config",
            "its derivative is rounded": "scaled_dot_general",
        }
    ),
    "random": reasons(
        {
            EXACT: "PRNGKey bernoulli binomial bits categorical clone fold_in geometric key "
            "key_data key_dtype key_impl multinomial poisson rademacher randint split "
            "wrap_key_data",
            "its derivative is that of its quantile: tests/unit/test_random_gamma.py": "ball beta "
            "chisquare dirichlet f gamma generalized_normal loggamma t",
            "its samples have no parameter": "cauchy exponential gumbel laplace logistic maxwell "
            "normal orthogonal",
        }
    ),
}

IMAGE: Table = {
    "resize": Call(lambda x: image.resize(x, (3, 2), "cubic"), (M,)),
    "resize to nearest": Call(lambda x: image.resize(x, (3, 2), "nearest"), (M,)),
    "scale_and_translate": Call(
        lambda x, s, t: image.scale_and_translate(x, (3, 4), (0, 1), s, t, "lanczos3"),
        (M, P[:2], U[:2]),
    ),
}

TABLES: dict[str, Table] = {
    "numpy": NUMPY,
    "numpy.linalg": LINALG,
    "numpy.fft": FFT,
    "lax": LAX,
    "image": IMAGE,
    "nn": NN,
    "random": RANDOM,
}
