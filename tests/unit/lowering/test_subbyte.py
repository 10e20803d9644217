"""Numbers narrower than a byte at the boundary of compiled programs."""

import ml_dtypes
import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int2", "int4", "uint2", "uint4", "float4_e2m1fn"])
def test_numbers_narrower_than_a_byte_are_arguments_and_results(dtype: str) -> None:
    x = jnp.array([1, 0, 3, 2] if dtype[0] == "u" else [-1, 0, 1, -2]).astype(dtype)
    seen: list[np.ndarray] = []

    def f(x: effax.Array, r: effax.Ref) -> tuple[effax.Array, ...]:
        effax.debug.callback(seen.append, x)
        r[0] = x[2]
        double = lax.fori_loop(0, 2, lambda i, x: x + x, x)
        return double, x.astype("int32"), effax.pure_callback(lambda x: np.asarray(x)[::-1], x, x)

    eager, compiled = effax.new_ref(x), effax.new_ref(x)
    expected, found = f(x, eager), effax.jit(f)(x, compiled)
    for a, b in zip((*expected, eager[...]), (*found, compiled[...]), strict=True):
        # The same bits, so that the host's memory is NumPy's own form.
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert [y.dtype for y in seen] == [getattr(ml_dtypes, dtype)] * 2


def test_narrow_integers_combine_with_python_integers() -> None:
    x = jnp.array([1, 0]).astype("int4")
    assert (x + 1).dtype == (x * True).dtype == jnp.int4
    for other in (1.0, jnp.int8(1), x.astype("uint4")):
        with pytest.raises(TypeError, match="promotes to no other dtype"):
            x + other
