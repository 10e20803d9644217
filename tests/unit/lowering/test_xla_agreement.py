"""Agreement between processes, by threads over a store in memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import Any, cast

import pytest

from effax.ir.errors import ProcessesDiffer
from effax.lowering.xla import processes
from effax.lowering.xla.processes import Group, GroupOptions


class Store:
    """The store of jaxlib's coordination service, of which each client has all values."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = Condition()

    def key_value_set(self, key: str, value: str) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def key_value_delete(self, key: str) -> None:
        del self.values[key]

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, timeout_in_ms / 1000):
                raise RuntimeError("DEADLINE_EXCEEDED")
            return self.values[key]


def run(work: Callable[[Group, int], None], n: int = 3) -> Store:
    store = Store()
    options = [GroupOptions("", n, rank, collective_timeout=5) for rank in range(n)]
    with ThreadPoolExecutor(n) as pool:
        done = [pool.submit(work, Group(o, "", cast(Any, store)), o.rank) for o in options]
    for each in done:
        each.result()
    return store


def test_processes_that_compile_together_agree_alone() -> None:
    def work(group: Group, rank: int) -> None:
        assert group.exchange("counts", str(rank)) == ["0", "1", "2"]
        if rank:
            group.agree("compiles", "f", (1, 2))
            with pytest.raises(ProcessesDiffer, match="process 2"):
                group.agree("compiles", f"f{rank}", (1, 2))
        group.agree("compiles", "g")

    store = run(work)
    # What every process has read is removed.
    assert sorted(store.values) == [f"effax/0,1,2/2/{k}" for k in range(3)] + [
        f"effax/1,2/4/{k}" for k in (1, 2)
    ]


def test_the_first_difference_of_long_texts_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_CHUNK", 100)
    lines = [f"line {i} {i**9}" for i in range(1000)]

    def work(group: Group, rank: int) -> None:
        own = [*lines[:700], f"here {rank}", *lines[700:]]
        with pytest.raises(ProcessesDiffer) as caught:
            group.agree("compiles", "\n".join(own))
        assert f"-here 0\n+here {max(rank, 1)}" in str(caught.value)

    run(work)
