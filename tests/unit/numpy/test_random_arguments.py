"""Every function that NumPy has too, on random arguments: values are those of NumPy's, widened.

Arrays are of each kind and width, empty, without axes, and broadcast; NumPy computes in the widest
dtype of the kind, and the result is compared within the precision of the narrow one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import effax as jax
import effax.numpy as jnp
from effax.ir.dtypes import as_dtype, family, is_inexact_dtype
from effax.numpy.dtypes import finfo

WIDE = {
    "bool": "bool",
    "int": "int64",
    "uint": "int64",
    "float": "float64",
    "complex": "complex128",
}
DTYPES = ("float32", "int32", "bool", "int8", "uint8", "bfloat16", "float16", "complex64")
WIDE_DTYPES = ("int64", "float64", "complex128")
INTEGERS = {"bool": (0, 2), "uint": (1, 5), "int": (-3, 4)}
SHAPES = ((3,), (), (0,), (2, 3), (1, 3), (0, 3), (2, 1, 3))

# The function of the library n, called as written. The name of a parameter says what it is:
# x an array, y one that broadcasts with it, axis an axis of x, v and w vectors, m a matrix, s a
# square one, p and q coefficients, i positions in v, c a boolean vector.
ALIKE = {
    "f(x)": """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh around
        array asarray asin asinh atan atanh atleast_1d atleast_2d atleast_3d cbrt ceil conj
        conjugate copy cos cosh deg2rad degrees exp exp2 expm1 fabs fix flatnonzero floor
        frexp imag invert iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf isreal
        isrealobj log log10 log1p log2 logical_not modf nan_to_num ndim negative nonzero
        argwhere bitwise_count bitwise_invert bitwise_not ones_like positive rad2deg radians ravel
        real rint shape sign signbit sin sinc sinh size sort_complex sqrt square tan tanh
        transpose trunc unique zeros_like i0 squeeze round""",
    "f(x, y)": """add allclose arctan2 array_equal array_equiv atan2 bitwise_and bitwise_or
        bitwise_xor broadcast_arrays copysign divide equal float_power floor_divide fmax fmin fmod
        gcd greater greater_equal heaviside hypot isclose lcm less less_equal logaddexp logaddexp2
        logical_and logical_or logical_xor maximum minimum mod multiply not_equal remainder
        subtract true_divide divmod union1d intersect1d setxor1d setdiff1d isin outer kron""",
    "f(x, axis=axis)": """all amax amin any argmax argmin count_nonzero cumprod cumsum max mean
        min nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod
        nanstd nansum nanvar prod ptp std sum var flip average""",
    "f(m)": """trace diagonal diag fliplr flipud matrix_transpose tril triu rot90 gradient ediff1d
        diagflat cov""",
    "f(v)": "hstack vstack dstack column_stack diff unwrap corrcoef vander trim_zeros",
    "f(v, w)": "convolve correlate cross inner vdot vecdot polyadd polysub append",
    "f(s, s)": "matmul tensordot",
    "f(n)": "bartlett blackman hamming hanning eye identity tri",
}
CALLS: dict[str, Callable[..., Any]] = {
    "apply_along_axis": lambda n, m: n.apply_along_axis(n.sum, 1, m),
    "apply_over_axes": lambda n, m: n.apply_over_axes(n.sum, m, [0, 1]),
    "arange": lambda n, size: n.arange(size),
    "argpartition": lambda n, v: n.take(v, n.argpartition(v, 1))[1],
    "argsort": lambda n, x, axis: n.argsort(x, axis=axis, **stable(n)),
    "dot": lambda n, v, w, s: (n.dot(v, w), n.dot(s, s)),
    "array_split": lambda n, m: n.array_split(m, 2, axis=1),
    "astype": lambda n, x: x.astype("bool"),
    "bincount": lambda n, i: n.bincount(i, minlength=4),
    "block": lambda n, m: n.block([[m, m], [m, m]]),
    "broadcast_to": lambda n, v: n.broadcast_to(v, (2, 3)),
    "choose": lambda n, i, v: n.choose(i, [v, v + v, v]),
    "clip": lambda n, x: n.clip(x.real, 0, 2),
    "compress": lambda n, c, m: n.compress(c, m, axis=1),
    "concat": lambda n, m: n.concat([m, m], axis=1),
    "concatenate": lambda n, v, w: n.concatenate([v, w]),
    "cumulative_prod": lambda n, v: n.cumulative_prod(v, include_initial=True),
    "cumulative_sum": lambda n, v: n.cumulative_sum(v),
    "delete": lambda n, m: n.delete(m, 1, axis=1),
    "digitize": lambda n, v: n.digitize(v, np.array([-1, 0, 1])),
    "dsplit": lambda n, m: n.dsplit(m[None], 3),
    "einsum": lambda n, m, s: n.einsum("ij,ki->jk", m, s),
    "expand_dims": lambda n, x: n.expand_dims(x, 0),
    "extract": lambda n, c, v: n.extract(c, v),
    "full": lambda n, size: n.full(size, 2.5),
    "full_like": lambda n, x: n.full_like(x, 1),
    "geomspace": lambda n, size: n.geomspace(1.0, 8.0, size),
    "histogram": lambda n, v: n.histogram(v, 4, (-3, 3))[0],
    "histogram2d": lambda n, v, w: n.histogram2d(v, w, 2, ((-3, 3), (-3, 3)))[0],
    "histogram_bin_edges": lambda n, v: n.histogram_bin_edges(v, 4, (-3, 3)),
    "histogramdd": lambda n, m: n.histogramdd(m, 2, ((-3, 3),) * 3)[0],
    "hsplit": lambda n, m: n.hsplit(m, 3),
    "indices": lambda n, size: n.indices((size, 2)),
    "insert": lambda n, v: n.insert(v, 1, 2),
    "interp": lambda n, v: n.interp(v, np.array([-1.0, 0.0, 1.0]), np.array([3.0, 1.0, 2.0])),
    "ix_": lambda n, i: n.ix_(i, i),
    "kaiser": lambda n, size: n.kaiser(size, 3.0),
    "ldexp": lambda n, x: n.ldexp(x, np.int32(2)),
    "left_shift": lambda n, i: n.left_shift(i, 2),
    "bitwise_left_shift": lambda n, i: n.bitwise_left_shift(i, 2),
    "lexsort": lambda n, v, w: n.lexsort((v, w)),
    "linspace": lambda n, v, w: n.linspace(v, w, 4),
    "logspace": lambda n, size: n.logspace(0, 2, size),
    "matvec": lambda n, m, v: n.matvec(m, v),
    "median": lambda n, m: n.median(m.real, axis=1),
    "nanmedian": lambda n, m: n.nanmedian(m.real, axis=0),
    "meshgrid": lambda n, v, w: n.meshgrid(v, w),
    "moveaxis": lambda n, m: n.moveaxis(m, 0, 1),
    "nanpercentile": lambda n, v: n.nanpercentile(v, 30),
    "nanquantile": lambda n, v: n.nanquantile(v, 0.3),
    "ones": lambda n, size: n.ones(size),
    "empty": lambda n, size: n.empty(size).shape,
    "empty_like": lambda n, x: n.empty_like(x).shape,
    "packbits": lambda n, c: n.packbits(c),
    "pad": lambda n, m: n.pad(m, 2, mode="reflect"),
    "partition": lambda n, v: n.partition(v, 1)[1],
    "percentile": lambda n, m: n.percentile(m, 30, axis=0),
    "permute_dims": lambda n, m: n.permute_dims(m, (1, 0)),
    "piecewise": lambda n, v: n.piecewise(v, [v < 0], [lambda x: x + x, lambda x: x]),
    "place": lambda n, c, v: changed(n, "place", v, c, np.zeros(3, np.int8)),
    "poly": lambda n, v: n.poly(v),
    "polyder": lambda n, v: n.polyder(v),
    "polydiv": lambda n, v: n.polydiv(v, np.array([1.0, 2.0], np.float32))[0],
    "polyfit": lambda n, v: n.polyfit(np.array([-1.0, 0.0, 2.0], np.float32), v, 1),
    "polyint": lambda n, v: n.polyint(v),
    "polymul": lambda n, v, w: n.polymul(v + 0.5, w + 0.5),
    "polyval": lambda n, v, x: n.polyval(v, x),
    "power": lambda n, x: n.power(x, 2),
    "pow": lambda n, x: n.pow(x, 3),
    "put": lambda n, i, v: changed(n, "put", v, i[:1], 1),
    "put_along_axis": lambda n, v: changed(n, "put_along_axis", v, np.array([1]), v[:1], axis=0),
    "fill_diagonal": lambda n, m: changed(n, "fill_diagonal", m, 1),
    "quantile": lambda n, m: n.quantile(m, 0.3, axis=1),
    "ravel_multi_index": lambda n, i: n.ravel_multi_index((i, i), (3, 3)),
    "reciprocal": lambda n, v: n.reciprocal(v + 0.5),
    "repeat": lambda n, m: n.repeat(m, 2, axis=1),
    "reshape": lambda n, m: n.reshape(m, (3, -1)),
    "resize": lambda n, v: n.resize(v, (2, 4)),
    "right_shift": lambda n, i: n.right_shift(i, 1),
    "bitwise_right_shift": lambda n, i: n.bitwise_right_shift(i, 1),
    "roll": lambda n, m: n.roll(m, 2, axis=1),
    "rollaxis": lambda n, m: n.rollaxis(m, 1),
    "searchsorted": lambda n, v, w: n.searchsorted(n.sort(v), w),
    "select": lambda n, c, v: n.select([c], [v], 7),
    "sort": lambda n, x, axis: n.sort(x, axis=axis),
    "split": lambda n, m: n.split(m, 3, axis=1),
    "stack": lambda n, v: n.stack([v, v], axis=1),
    "swapaxes": lambda n, m: n.swapaxes(m, 0, 1),
    "take": lambda n, m, i: n.take(m, i, axis=1),
    "take_along_axis": lambda n, v, i: n.take_along_axis(v, i, 0),
    "tile": lambda n, m: n.tile(m, (2, 1, 2)),
    "trapezoid": lambda n, v: n.trapezoid(v + 0.5),
    "tril_indices": lambda n, size: n.tril_indices(size, 1),
    "triu_indices": lambda n, size: n.triu_indices(size, -1),
    "tril_indices_from": lambda n, m: n.tril_indices_from(m),
    "triu_indices_from": lambda n, m: n.triu_indices_from(m),
    "diag_indices": lambda n, size: n.diag_indices(size),
    "diag_indices_from": lambda n, s: n.diag_indices_from(s),
    "mask_indices": lambda n, size: n.mask_indices(size, n.triu),
    "unique_all": lambda n, v: tuple(n.unique_all(v)),
    "unique_counts": lambda n, v: tuple(n.unique_counts(v)),
    "unique_inverse": lambda n, v: tuple(n.unique_inverse(v)),
    "unique_values": lambda n, v: n.sort(n.unique_values(v)),
    "unpackbits": lambda n, i: n.unpackbits(i.astype("uint8")),
    "unravel_index": lambda n, i: n.unravel_index(i, (2, 2)),
    "unstack": lambda n, m: n.unstack(m, axis=1),
    "vecmat": lambda n, v, m: n.vecmat(v[:2], m),
    "vsplit": lambda n, m: n.vsplit(m, 2),
    "where": lambda n, c, x, v: n.where(c, v, 1),
    "zeros": lambda n, size: n.zeros((size, 1)),
}
# No functions of arrays, or tested against Python, files and other libraries.
OTHERS = {
    *("array_repr", "array_str", "broadcast_shapes", "can_cast", "einsum_path", "from_dlpack"),
    *("frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring", "isdtype"),
    *("get_printoptions", "isscalar", "issubdtype", "iterable", "load", "nextafter", "save"),
    *("printoptions", "promote_types", "result_type", "roots", "savez", "set_printoptions"),
    "spacing",
}


def stable(n: Any) -> dict[str, object]:
    return {"kind": "stable"} if n is np else {}


def changed(n: Any, name: str, x: Any, *args: object, **kwargs: object) -> Any:
    """Return the array that NumPy's function changes in place, and effax's returns."""
    if n is not np:
        return getattr(n, name)(x, *args, **kwargs, inplace=False)
    getattr(n, name)(x, *args, **kwargs)
    return x


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each name with its call on a library and arrays."""
    for form, names in ALIKE.items():
        inner = form.removeprefix("f(").removesuffix(")")
        params = ", ".join(dict.fromkeys(p.split("=")[0] for p in inner.split(", ")))
        params, inner = (x.replace("n", "size") if x == "n" else x for x in (params, inner))
        for name in names.split():
            yield name, eval(f"lambda n, {params}: n.{name}({inner})")
    yield from CALLS.items()


@st.composite
def arguments(draw: st.DrawFn, names: tuple[str, ...]) -> dict[str, Any]:
    """Draw arrays, in their dtypes, by the names of parameters."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtypes = st.sampled_from(DTYPES + (WIDE_DTYPES if jax.config.enable_x64 else ()))
    shape = draw(st.sampled_from(SHAPES))
    fixed = {"v": (3,), "w": (3,), "m": (2, 3), "s": (2, 2), "x": shape}
    found: dict[str, Any] = {}
    for name in names:
        if name == "axis":
            found[name] = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
        elif name == "size":
            found[name] = draw(st.integers(1, 5))
        elif name == "i":
            found[name] = rng.integers(0, 3, 3).astype(np.int32)
        elif name == "c":
            found[name] = rng.integers(0, 2, 3) > 0
        else:
            sizes = fixed.get(name, tuple([n if rng.integers(2) else 1 for n in shape]))
            found[name] = random_array(rng, sizes, draw(dtypes))
    return found


def random_array(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return numbers that every dtype has exactly, none of them 0 among floats."""
    dtype = as_dtype(name)
    if family(dtype) in INTEGERS:
        return np.asarray(rng.integers(*INTEGERS[family(dtype)], shape)).astype(dtype)
    real = (2 * rng.integers(-10, 10, shape) + 1) / 8
    imaginary = 1j * (2 * rng.integers(-10, 10, shape) + 1) / 8 if "complex" in name else 0
    return np.asarray(real + imaginary).astype(dtype)


def widened(x: Any) -> Any:
    is_array = isinstance(x, np.ndarray)
    return x.astype(WIDE[family(x.dtype)]) if is_array else x


def compare(found: Any, expected: Any, precision: float) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            compare(x, y, precision)
        return
    x, y = np.asarray(found), np.asarray(expected)
    assert x.shape == y.shape
    if is_inexact_dtype(x.dtype):
        epsilons = [float(finfo(z.dtype).eps) for z in (x, y) if is_inexact_dtype(z.dtype)]
        precision = max(precision, *epsilons)
        scale = float(np.max(np.abs(y), initial=1, where=np.isfinite(y)))
        wide = x.astype(WIDE[family(x.dtype)])
        np.testing.assert_allclose(wide, y, rtol=64 * precision, atol=64 * precision * scale)
    else:
        np.testing.assert_array_equal(x, y.astype(x.dtype))


FUNCTIONS = dict(functions())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_values_are_those_of_numpy(name: str) -> None:
    call = FUNCTIONS[name]
    names = tuple(inspect.signature(call).parameters)[1:]

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data(), st.booleans())
    def agrees(data: st.DataObject, wide: bool) -> None:
        with jax.enable_x64(wide):
            check(data.draw(arguments(names)))

    def check(given_: dict[str, Any]) -> None:
        with np.errstate(all="ignore"), catch_warnings():
            simplefilter("ignore")
            try:
                expected = call(np, **{k: widened(x) for k, x in given_.items()})
            except (TypeError, ValueError, ZeroDivisionError):
                assume(False)
        arrays = {k: x if k in ("axis", "size") else jnp.asarray(x) for k, x in given_.items()}
        inexact = [x.dtype for x in arrays.values() if hasattr(x, "dtype")]
        epsilons = [float(finfo(d).eps) for d in inexact if is_inexact_dtype(d)]
        compare(call(jnp, **arrays), expected, max(epsilons, default=0.0))

    agrees()


def test_every_function_of_arrays_is_tried() -> None:
    shared = {
        name
        for name in dir(jnp)
        if name[0] != "_"
        and callable(getattr(np, name, None))
        and not isinstance(getattr(np, name), type)
        and not isinstance(getattr(jnp, name), type | ModuleType)
    }
    assert shared - set(FUNCTIONS) - OTHERS == set()
