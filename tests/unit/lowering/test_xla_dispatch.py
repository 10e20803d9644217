"""The C++ dispatcher: when it asks, what it looks through, what it refuses."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from effax.ir.errors import LoweringError
from effax.ir.types import array_type
from effax.lowering import xla
from tests.unit.lowering.programs import F32, accumulate, add_one


class Box:
    """A user-facing array."""

    def __init__(self, buffer: xla.Buffer) -> None:
        self.buffer = buffer


def boxed(value: float | np.ndarray, weak: bool = False) -> Box:
    return Box(xla.put(np.asarray(value, np.float32), weak))


def value(box: object) -> float:
    assert isinstance(box, Box)
    return float(xla.to_numpy(box.buffer))


@pytest.fixture(scope="module")
def nodes() -> xla.Nodes:
    made = xla.Nodes()
    made.register(Box, ["buffer"])
    return made


@pytest.fixture(scope="module")
def add() -> xla.Executable:
    return xla.compile_module(add_one(), 1, [F32])


class Adder:
    """A `miss` that counts how often it is asked."""

    def __init__(self, add: xla.Executable) -> None:
        self.add = add
        self.asked = 0

    def __call__(self, tree: dict[str, tuple[Box]]) -> tuple[list[Box], xla.Executable | None]:
        self.asked += 1
        (box,) = tree["x"]
        (out,) = self.add([box.buffer])
        return [Box(out)], self.add


def test_it_asks_once_a_type(nodes: xla.Nodes, add: xla.Executable) -> None:
    miss = Adder(add)
    call = xla.fast_call("add", miss, nodes)
    for number in range(5):
        outs = call({"x": (boxed(number),)})
        assert isinstance(outs, list)
        assert value(outs[0]) == number + 1
        assert xla.type_of(outs[0].buffer) is F32
    assert miss.asked == 1
    call({"x": (boxed(1, weak=True),)})
    assert miss.asked == 2
    call({"x": (boxed(1),)})
    assert miss.asked == 2


def test_another_shape_of_tree_is_asked_for(nodes: xla.Nodes, add: xla.Executable) -> None:
    asked = []

    def miss(*args: Box, **kwargs: Box) -> tuple[Box, xla.Executable]:
        asked.append((len(args), sorted(kwargs)))
        (box,) = (*args, *kwargs.values())
        return Box(add([box.buffer])[0]), add

    call = xla.fast_call("add", miss, nodes)
    for _ in range(2):
        assert value(call(boxed(1))) == 2
        assert value(call(x=boxed(1))) == 2
        assert value(call(y=boxed(1))) == 2
    assert asked == [(1, []), (0, ["x"]), (0, ["y"])]


def test_leaves_come_in_order_and_keywords_by_name(nodes: xla.Nodes) -> None:
    type_ = array_type((), np.float32)
    both = xla.compile_module(accumulate(type_), 2, [type_, type_])

    def miss(**kwargs: Box) -> tuple[dict[str, Box], xla.Executable]:
        x, total = both([kwargs["ref"].buffer, kwargs["x"].buffer])
        return {"kept": Box(x), "total": Box(total)}, both

    call = xla.fast_call("both", miss, nodes)
    for ref in (10.0, 20.0, 30.0):
        given = boxed(ref)
        out = call(x=boxed(1), ref=given)
        assert isinstance(out, dict)
        assert (value(out["kept"]), value(out["total"])) == (1, ref + 1)
        assert xla.is_deleted(given.buffer)
    assert nodes.leaves({"b": 2, "a": [1, None]}) == [1, 2]


def test_references_stay_in_place(nodes: xla.Nodes) -> None:
    type_ = array_type((1000,), np.float32)
    call = xla.compile_module(accumulate(type_), 2, [type_, type_])
    one = Box(xla.put(np.ones(1000, np.float32)))
    ref = Box(xla.new_ref_buffer(np.zeros(1000, np.float32)))
    address, view = xla.pointer(ref.buffer), xla.raw_view(ref.buffer)

    def miss(ref: Box, x: Box) -> tuple[tuple[xla.Buffer, ...], xla.Executable]:
        return tuple(call([ref.buffer, x.buffer])), call

    fast = xla.fast_call("accumulate", miss, nodes)
    for step in range(4):
        outs = fast(ref, one)
        assert isinstance(outs, tuple)
        ref.buffer = outs[1]
        assert xla.pointer(ref.buffer) == address
        assert (view == 11 * step + 1).all()
        view += 10


@pytest.mark.parametrize("leaf", [3.0, np.float32(3), np.float64(3), np.ones(()), "text"])
def test_where_a_leaf_is_no_buffer_it_asks_each_time(
    nodes: xla.Nodes, add: xla.Executable, leaf: object
) -> None:
    asked = []

    def miss(x: object) -> tuple[object, xla.Executable]:
        asked.append(x)
        return (Box(add([x.buffer])[0]) if isinstance(x, Box) else "other"), add

    call = xla.fast_call("mixed", miss, nodes)
    call(boxed(3, weak=True))
    call(boxed(3))
    assert [call(leaf), call(leaf)] == ["other", "other"]
    assert asked[2:] == [leaf, leaf]
    call(boxed(3))
    assert len(asked) == 4


def test_without_an_executable_it_asks_each_time(nodes: xla.Nodes) -> None:
    asked = []

    def miss(box: Box) -> tuple[object, None]:
        asked.append(box)
        return len(asked), None

    call = xla.fast_call("effects", miss, nodes)
    box = boxed(1)
    assert [call(box), call(box), call(box)] == [1, 2, 3]


def test_what_miss_raises_is_raised(nodes: xla.Nodes) -> None:
    def miss(*_: object) -> tuple[object, None]:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        xla.fast_call("failing", miss, nodes)(boxed(1))


def test_trees_that_are_not_the_executables_are_refused(
    nodes: xla.Nodes, add: xla.Executable
) -> None:
    def outputs(make: Callable[[Box], object]) -> Callable[..., object]:
        return xla.fast_call("wrong", lambda *boxes: (make(boxes[0]), add), nodes)

    for make in (
        lambda box: [box, box],
        lambda box: [],
        lambda box: 3,
        lambda box: boxed(np.ones(3)),
    ):
        with pytest.raises(LoweringError, match="not those of the executable"):
            outputs(make)(boxed(1))
    with pytest.raises(LoweringError, match="2 buffers in"):
        outputs(lambda box: box)(boxed(1), boxed(1))


def test_a_call_that_is_dropped_frees_what_it_held(nodes: xla.Nodes, add: xla.Executable) -> None:
    before = xla.backend().calls.size()
    miss = Adder(add)
    call = xla.fast_call("dropped", miss, nodes)
    box = boxed(1)
    call({"x": (box,)})
    call({"x": (box,)})
    assert xla.backend().calls.size() == before + 1
    alive, argument = weakref.ref(miss), weakref.ref(box.buffer)
    del call, miss, box
    gc.collect()
    assert alive() is None
    assert argument() is None
    assert xla.backend().calls.size() == before
