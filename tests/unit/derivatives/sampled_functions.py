"""Calls of functions of polynomials, samples, windows, sets and positions."""

from __future__ import annotations

import numpy as np

import effax.numpy as jnp
from tests.unit.derivatives.functions import (
    CREATES,
    EXACT,
    Call,
    Table,
    but,
    on,
    point,
    reasons,
)

X, Y = point(4), point(4, seed=1)
M = point(3, 4)
PHASES = np.array([0.1, 0.7, -0.4, 0.2])
POSITIVE = np.array([0.7, 1.9, 3.1, 4.2])
EDGES = np.array([-9.0, -1.0, 2.0, 9.0])

SAMPLED: Table = {
    **on("polyval polyadd polysub polymul cov corrcoef", jnp, X, Y),
    **on("polyder polyint poly vander cumulative_sum cumulative_prod gradient trapezoid", jnp, X),
    **on("ediff1d unwrap i0", jnp, PHASES),
    "polydiv": Call(lambda x, y: jnp.polydiv(x, y[:2]), (X, Y)),
    "frexp": Call(lambda x: jnp.frexp(x)[0], (X,), modes=("rev",), order=1),
    "geomspace": Call(lambda x: jnp.geomspace(x[0], x[1], 4), (POSITIVE,)),
    "kaiser": Call(lambda x: jnp.kaiser(5, x[0]), (POSITIVE,)),
    "nanpercentile": Call(but(jnp.nanpercentile, 30.0), (X,)),
    "minmax": Call(jnp.minmax, (X,)),
    "apply_along_axis": Call(lambda x: jnp.apply_along_axis(jnp.prod, 1, x), (M,)),
    "apply_over_axes": Call(lambda x: jnp.apply_over_axes(jnp.prod, x, [1]), (M,)),
    "block": Call(lambda x, y: jnp.block([x, y]) ** 2, (X, Y)),
    "dsplit": Call(lambda x: [part**2 for part in jnp.dsplit(x[None], 2)], (M,)),
    "rollaxis": Call(lambda x: jnp.rollaxis(x, 1) ** 2, (M,)),
    "resize": Call(lambda x: jnp.resize(x, (5,)) ** 2, (X,)),
    "delete": Call(lambda x: jnp.delete(x, 1) ** 2, (X,)),
    "insert": Call(lambda x, y: jnp.insert(x, 1, y) ** 2, (X, Y)),
    "partition": Call(lambda x: jnp.partition(x, 2) ** 2, (X,)),
    "choose": Call(lambda x, y: jnp.choose(np.array([0, 1, 1, 0]), [x, y]) ** 2, (X, Y)),
    "compress": Call(lambda x: jnp.compress(np.array([True, False, True]), x) ** 2, (X,)),
    "piecewise": Call(lambda x: jnp.piecewise(x, [x > 0], [jnp.square, jnp.sin]), (X,)),
    "place": Call(lambda x, y: jnp.place(x, EDGES > 0, y, inplace=False) ** 2, (X, Y)),
    "put": Call(lambda x, y: jnp.put(x, np.array([2, 0, 1]), y[:3], inplace=False) ** 2, (X, Y)),
    "put_along_axis": Call(
        lambda x, y: jnp.put_along_axis(x, np.array([2, 0]), y[:2], 0, inplace=False) ** 2, (X, Y)
    ),
    "fill_diagonal": Call(lambda x, y: jnp.fill_diagonal(x, y[:3], inplace=False) ** 2, (M, Y)),
    "fromfunction": Call(lambda x: jnp.fromfunction(lambda i: x**2 + i, (4,)), (X,)),
    "histogram": Call(lambda w: jnp.histogram(X, EDGES, weights=w**2)[0], (Y,)),
    "histogram2d": Call(lambda w: jnp.histogram2d(X, Y, [EDGES, EDGES], weights=w**2)[0], (Y,)),
    "histogramdd": Call(lambda w: jnp.histogramdd([X, Y], [EDGES, EDGES], weights=w**2)[0], (Y,)),
    "histogram_bin_edges": Call(lambda x: jnp.histogram_bin_edges(x, 3) ** 2, (X,)),
}
"""Functions that have derivatives."""

WITHOUT: dict[str, str] = reasons(
    {
        EXACT: "argpartition packbits sort_complex spacing unpackbits",
        CREATES: "bartlett blackman hamming hanning diag_indices_from mask_indices "
        "tril_indices_from triu_indices_from frombuffer fromfile fromiter fromstring load save "
        "savez from_dlpack",
        "it concerns text and types": "array_repr array_str get_printoptions iterable printoptions "
        "set_printoptions",
        "its result has derivatives": "frompyfunc",
        "the number of its elements depends on their values": "intersect1d setdiff1d setxor1d "
        "union1d unique_all unique_counts unique_inverse unique_values trim_zeros",
    }
)
