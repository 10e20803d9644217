"""A run of several processes, which saves each step and continues from the last one.

At step 2 of the first attempt, process 1 is killed while the others compute; at step 4, process 0
kills the launcher, which runs the coordination service, before the step's index is written.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import effax as jax
import effax.numpy as jnp
from effax.api.checkpoints import save
from effax.sharding import NamedSharding, P

STEPS = 6


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def main(folder: Path, disturbed: bool) -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("x",))
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    table: Any = jax.new_ref(jax.device_put(np.zeros((8, 3), np.float32), rows))
    shared: Any = jax.new_ref(jax.device_put(np.zeros(3, np.float32), whole))

    @jax.jit
    def step(key: Any) -> Any:
        x = jax.random.normal(key, (8, 3))
        table[...] = 0.9 * table[...] + x
        shared[...] += jnp.mean(jnp.tanh(table[...]), axis=0)
        return jnp.sum(shared[...] ** 2)

    state: dict[str, Any] = {"table": table, "shared": shared, "key": jax.random.key(1), "step": 0}
    manager = jax.checkpoint.CheckpointManager(folder, keep=2)
    state = manager.restore(like=state)
    rank, first = jax.process_index(), state["step"]
    for number in range(first, STEPS):
        if disturbed and number == 2 and first == 0 and rank == 1:
            killed(os.getpid())
        key, state["key"] = jax.random.split(state["key"])
        loss = step(key)
        if disturbed and number == 4 and first < 4 and rank == 0:
            vars(save)["write_index"] = lambda *_: killed(os.getppid())
        state["step"] = number + 1
        manager.save(number + 1, state, wait=False)
        if rank == 0:
            sys.stdout.write(f"loss {number} {float(loss).hex()}\n")
            sys.stdout.flush()
    manager.wait_until_finished()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "disturbed")
