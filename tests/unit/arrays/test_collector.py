from __future__ import annotations

import gc
from threading import Event, Thread

import pytest

import effax
import effax.numpy as enp
from effax.arrays.collector import paused_collector
from effax.transforms import jvp


def test_pauses_in_two_threads_end_with_the_last() -> None:
    inside, leave = Event(), Event()

    def other() -> None:
        with paused_collector():
            inside.set()
            leave.wait(10)

    thread = Thread(target=other)
    with paused_collector():
        thread.start()
        assert inside.wait(10)
        assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_only_the_front_door_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[str] = []
    jaxpr = effax.make_jaxpr(enp.sin)(1.0).jaxpr
    monkeypatch.setattr(gc, "disable", lambda: paused.append("disabled"))
    jvp(jaxpr, [True]).unwrap()
    assert not paused
    effax.grad(enp.sin)(1.0)
    assert paused
