"""Programs with rules by reference are values: copies, text, pickles and files of each."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import export, lax
from effax.arrays.binding import run
from effax.ir.analysis.check import check
from effax.ir.syntax import Jaxpr
from effax.ir.text.parser import parse
from effax.ir.text.printer import references
from effax.transforms.jvp import jvp
from effax.transforms.reverse.engine import reverse
from effax.transforms.vmap.engine import vmap
from tests.unit.api.ruled_functions import EVERY, root_of, tangent_solve

jax: Any = effax
SPELLINGS = pytest.mark.parametrize("spelling", EVERY)
X = jnp.float32(3.0)


def program(spelling: str) -> Jaxpr:
    return effax.make_jaxpr(EVERY[spelling][0])(X).jaxpr


@SPELLINGS
def test_two_traces_and_all_copies_are_equal(spelling: str) -> None:
    jaxpr = program(spelling)
    copies = [
        program(spelling),
        copy.copy(jaxpr),
        copy.deepcopy(jaxpr),
        pickle.loads(pickle.dumps(jaxpr)),
        parse(str(jaxpr), references=references(jaxpr)),
    ]
    for other in copies:
        assert other == jaxpr
        assert hash(other) == hash(jaxpr)
    check(jaxpr).unwrap()


@SPELLINGS
def test_a_pickle_has_the_rules(spelling: str) -> None:
    _, slope, forward, batch = EVERY[spelling]
    jaxpr = pickle.loads(pickle.dumps(program(spelling)))
    (value, ct) = run(reverse(jaxpr, [True]).unwrap().jaxpr, [X, jnp.float32(1.0)])
    assert (float(value), float(ct)) == (6.0, slope)
    if forward is not None:
        (_, dot) = run(jvp(jaxpr, [True]).unwrap().jaxpr, [X, jnp.float32(1.0)])
        assert float(dot) == forward
    (values,) = run(vmap(jaxpr, 2, [0]).unwrap().jaxpr, [jnp.ones(2, "float32")])
    np.testing.assert_array_equal(values, [batch, batch])


@pytest.mark.slow
def test_a_pickle_is_read_by_another_process() -> None:
    jaxprs = {name: program(name) for name in EVERY}
    code = (
        "import pickle, sys\n"
        "from tests.unit.api.test_ruled_programs import program\n"
        "for name, jaxpr in pickle.load(sys.stdin.buffer).items():\n"
        "    assert jaxpr == program(name), name\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(jaxprs),
        cwd=Path(__file__).parents[3],
        check=True,
    )


@pytest.mark.parametrize("spelling", ["custom_jvp", "custom_rules", "linear_call"])
def test_rules_that_passes_wrapped_are_pickled(spelling: str) -> None:
    jaxpr = vmap(program(spelling), 2, [0]).unwrap().jaxpr
    read = pickle.loads(pickle.dumps(jaxpr))
    assert read == jaxpr
    operands = [jnp.ones(2, "float32")] * 2
    (_, cts) = run(reverse(read, [True]).unwrap().jaxpr, operands)
    np.testing.assert_array_equal(cts, [EVERY[spelling][1]] * 2)


def test_functions_without_a_name_are_not_pickled() -> None:
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    jaxpr = effax.make_jaxpr(f)(X).jaxpr
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(jaxpr)
    assert copy.deepcopy(jaxpr) == jaxpr

    def closing(y: Any) -> Any:
        return lax.custom_root(lambda x: x - y, y, root_of, tangent_solve)

    with pytest.raises(pickle.PicklingError, match="close over a value that is not known"):
        pickle.dumps(effax.make_jaxpr(closing)(X).jaxpr)


@SPELLINGS
def test_an_exported_file_has_the_derivatives(spelling: str) -> None:
    f, slope, _, _ = EVERY[spelling]
    made = export.deserialize(export.export(jax.jit(f))(X).serialize())
    assert float(made.call(X)) == 6.0
    assert float(jax.grad(made.call)(X)) == slope
    assert float(jax.jit(jax.grad(made.call))(X)) == slope
    np.testing.assert_array_equal(jax.vmap(jax.grad(made.call))(jnp.ones(2)), [slope, slope])
