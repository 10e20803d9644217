"""A program of two processes with two devices each, which the tests of the launcher run.

It ends with the death of process 1, of which process 0 gets an error.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial

import numpy as np
import pytest

import effax
import effax.numpy as jnp
from effax import lax
from effax.experimental import multihost_utils as mu
from effax.ir.errors import BadArgument, ProcessError, ProcessesDiffer, ProcessLost
from effax.lowering.xla import processes
from effax.sharding import NamedSharding, Sharding
from effax.sharding import PartitionSpec as P

RANK = effax.process_index()
MESH = effax.make_mesh((4,), ("x",))
ROWS = NamedSharding(MESH, P("x"))
WHOLE = np.arange(8.0, dtype=np.float32)


def rows() -> effax.Array:
    return effax.make_array_from_process_local_data(ROWS, WHOLE[4 * RANK :][:4])


def arrays_have_parts_in_all_processes() -> None:
    assert effax.distributed.is_initialized()
    effax.distributed.initialize()
    assert (effax.process_count(), effax.device_count(), effax.local_device_count()) == (2, 4, 2)
    assert effax.process_indices() == [0, 1]
    assert [d.process_index for d in effax.devices()] == [0, 0, 1, 1]
    assert jnp.ones(2).devices() == {effax.local_devices()[0]}
    x = rows()
    assert not x.is_fully_addressable
    assert len(x.global_shards) == 4
    own = {s.device: np.asarray(s.data).tolist() for s in x.addressable_shards}
    first = 4.0 * RANK
    here = effax.local_devices()
    assert own == {here[0]: [first, first + 1], here[1]: [first + 2, first + 3]}
    assert str(x) == repr(x) == "Array(shape=(8,), dtype=float32)"
    for read in (np.asarray, lambda y: y.tolist()):
        with pytest.raises(RuntimeError, match=r"process_allgather\(x\)"):
            read(x)
    with pytest.raises(ProcessError, match="none of the devices"):
        # The first device is of process 0, and that of process 1 is not used in process 0.
        effax.device_put(WHOLE, effax.devices()[2 - 2 * RANK])


def programs_run_in_all_processes() -> None:
    x = rows()
    assert float(effax.jit(jnp.sum)(x)) == 28
    assert np.asarray((x * 2).addressable_shards[0].data)[1] == 8 * RANK + 2
    summed = effax.shard_map(lambda a: lax.psum(a, "x"), mesh=MESH, in_specs=P("x"), out_specs=P())
    np.testing.assert_array_equal(effax.jit(summed)(x), [12, 16])
    np.testing.assert_array_equal(
        effax.grad(lambda y: jnp.sum(y**3))(x).addressable_data(0)[:1], 48.0 * RANK**2
    )
    np.testing.assert_array_equal(effax.jit(lambda a, b: (a * b).sum())(x, jnp.ones(8)), 28)


def references_are_updated_in_all_processes() -> None:
    x = rows()
    ref, count = effax.new_ref(x), effax.new_ref(jnp.zeros(3))
    address = ref.unsafe_buffer_pointer()

    @effax.jit
    def step(y: effax.Array) -> None:
        ref[...] += y
        effax.ref.addupdate(ref, jnp.array([0, 7]), jnp.array([10.0, 20.0]))
        count[...] += jnp.sum(y)

    for _ in range(2):
        step(x)
    assert ref.unsafe_buffer_pointer() == address
    expected = 3 * WHOLE + np.array([20, 0, 0, 0, 0, 0, 0, 40])
    found = mu.process_allgather(effax.freeze(ref), tiled=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(count[...], [56, 56, 56])


def arrays_move_between_placements() -> None:
    x = rows()
    np.testing.assert_array_equal(effax.device_put(x, NamedSharding(MESH, P())), WHOLE)
    square = effax.make_mesh((2, 2), ("a", "b"))
    other = effax.make_mesh((4,), ("y",), devices=effax.devices()[::-1])
    places: list[Sharding] = [NamedSharding(square, P(("b", "a"))), NamedSharding(other, P("y"))]
    for place in places:
        y = effax.device_put(x, place)
        assert y.sharding == place
        np.testing.assert_array_equal(mu.process_allgather(y, tiled=True), WHOLE)
    # No specification over the mesh describes this placement.
    z = effax.jit(lambda y: jnp.sin(y.reshape(4, 2).T.reshape(8)))(x)
    gathered = mu.process_allgather(z, tiled=True)
    np.testing.assert_allclose(gathered, np.sin(WHOLE.reshape(4, 2).T.ravel()), rtol=1e-6)
    assert float(effax.device_put(WHOLE, ROWS).sum()) == 28
    with pytest.raises(ProcessesDiffer, match="places an array"):
        effax.device_put(WHOLE + RANK, ROWS)
    local = effax.device_put(
        WHOLE, NamedSharding(effax.make_mesh((2,), ("z",), devices=effax.local_devices()), P("z"))
    )
    np.testing.assert_array_equal(local * 2, 2 * WHOLE)


def values_are_exchanged() -> None:
    big = np.array([RANK + 2.0**60, np.nan])
    np.testing.assert_array_equal(
        mu.process_allgather({"w": big})["w"][:, 0], [2.0**60, 1 + 2.0**60]
    )
    np.testing.assert_array_equal(mu.process_allgather(jnp.full(2, RANK), tiled=True), [0, 0, 1, 1])
    with pytest.raises(BadArgument, match="tiled"):
        mu.process_allgather(rows())
    sent = mu.broadcast_one_to_all([-0.0 if RANK else 1.0, np.bool_(RANK)], is_source=RANK == 1)
    assert np.signbit(sent[0])
    assert sent[1]
    with pytest.raises(BadArgument, match="one process"):
        mu.broadcast_one_to_all(1, is_source=True)
    mu.assert_equal({"step": 3, "w": WHOLE})
    with pytest.raises(AssertionError, match=r"(?s)epochs: .*w.*2"):
        mu.assert_equal({"step": 3, "w": RANK + 2}, "epochs")
    mu.sync_global_devices("here")
    with pytest.raises(ProcessesDiffer, match="process 0"):
        mu.sync_global_devices(f"point {RANK}")
    joined = mu.host_local_array_to_global_array(WHOLE[:4] + RANK, MESH, P("x"))
    assert joined.shape == (8,)
    np.testing.assert_array_equal(
        mu.global_array_to_host_local_array(joined, MESH, P("x")), WHOLE[:4] + RANK
    )


def programs_that_differ_are_refused() -> None:
    x = rows()
    with pytest.raises(ProcessesDiffer, match=r"(?s)--- process 0\n\+\+\+ process 1.*\n-.*\n\+"):
        effax.jit(lambda y: y * RANK)(x)
    members = processes.group()
    assert members is not None
    hurried = processes.Group(members.options._replace(collective_timeout=0), "", members.client)
    with pytest.raises(ProcessLost, match=f"process {RANK} waits for process 1"):
        hurried.get("an absent key", 1, "comes")
    other = partial(mu.sync_global_devices, "end") if RANK else partial(effax.jit(jnp.cos), x)
    with pytest.raises(ProcessesDiffer, match="the processes do not do the same"):
        other()
    np.testing.assert_array_equal(effax.jit(lambda y: (y * 3).sum())(x), 84)


def the_end_of_a_process_is_an_error() -> None:
    x = rows()
    step = effax.jit(lambda y: (y + 1).sum())
    step(x)
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(ProcessLost, match="process 1 was ended by SIGKILL"):
        step(x)
    with pytest.raises(ProcessLost, match="process 1"):
        mu.sync_global_devices("end")
    assert time.monotonic() - began < 10
    sys.stdout.write("process 0 got errors\n")


if __name__ == "__main__":
    arrays_have_parts_in_all_processes()
    programs_run_in_all_processes()
    references_are_updated_in_all_processes()
    arrays_move_between_placements()
    values_are_exchanged()
    programs_that_differ_are_refused()
    the_end_of_a_process_is_an_error()
