"""Arrays without elements: values are those of NumPy, derivatives are empty, nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax, nn
from tests.unit.lowering.compiled import run

E, R = np.zeros(0, np.float32), np.zeros((0, 3), np.float32)
NONE = np.zeros(0, np.int32)

CALLS: dict[str, tuple[Callable[[Any], Any], np.ndarray, object]] = {
    "sum": (jnp.sum, E, 0.0),
    "prod": (jnp.prod, E, 1.0),
    "columns": (lambda x: jnp.prod(x, 0), R, np.ones(3)),
    "rows": (lambda x: jnp.max(x, 1), R, E),
    "max and more": (lambda x: jnp.max(x, initial=-2.0), E, -2.0),
    "norm": (jnp.linalg.norm, E, 0.0),
    "dot": (lambda x: jnp.dot(x, x), E, 0.0),
    "outer": (lambda x: jnp.outer(x, jnp.ones(3)), E, R),
    "matmul": (lambda x: x.T @ x, R, np.zeros((3, 3))),
    "sort": (jnp.sort, E, E),
    "cumsum": (jnp.cumsum, E, E),
    "cumprod": (jnp.cumprod, E, E),
    "cummax": (lax.cummax, E, E),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, reverse=True), E, E),
    "logsumexp": (nn.logsumexp, E, -np.inf),
    "softmax": (nn.softmax, E, E),
    "log_softmax": (lambda x: nn.log_softmax(x, 0), R, R),
    "take": (lambda x: jnp.take(x, NONE, 1), R, np.zeros((0, 0))),
    "at": (lambda x: jnp.asarray(x).at[:, 1].multiply(2.0), R, R),
    "at no place": (lambda x: jnp.ones(3).at[NONE].multiply(x * 2), E, np.ones(3)),
    "concatenate": (lambda x: jnp.concatenate([x, jnp.ones(2)]), E, np.ones(2)),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x)[0], E, 0.0),
    "conv": (lambda x: lax.conv(x[None, :0], jnp.ones((2, 0, 1)), (1,), "SAME"), R, None),
    "hypot": (lambda x: jnp.hypot(x, x), E, E),
    "logaddexp": (lambda x: jnp.logaddexp(x, 0.0), E, E),
    "inv": (lambda x: jnp.linalg.inv(x[:, :0]), R, np.zeros((0, 0))),
    "det": (lambda x: jnp.linalg.det(x[:, :0]), R, 1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_elements(name: str) -> None:
    call, x, wanted = CALLS[name]

    def total(x: Any) -> Any:
        return jnp.sum(call(x) * 1.0)

    if wanted is not None:
        np.testing.assert_array_equal(np.asarray(call(x)), np.asarray(wanted, np.float32))
    for f in (effax.grad(total), effax.jacfwd(total)):
        assert f(x).shape == x.shape
    assert effax.hessian(total)(x).size == 0


def test_no_elements_compiled() -> None:
    def everything(e: Any, r: Any) -> list[Any]:
        given = [(call, e if x is E else r) for call, x, _ in CALLS.values()]
        return [call(x) for call, x in given]

    made = effax.make_jaxpr(everything)(E, R)
    found = run(made.jaxpr, [*map(np.asarray, made.consts), E, R])
    for value, (name, (call, x, _)) in zip(found, CALLS.items(), strict=True):
        np.testing.assert_array_equal(value, np.asarray(call(x)), err_msg=name)
