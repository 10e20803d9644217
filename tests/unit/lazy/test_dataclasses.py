"""Lazy dataclasses are those of the standard library."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from threading import Barrier, Thread
from typing import ClassVar

import pytest

from effax.lazy import dataclasses as lazy

Decorator = Callable[..., Callable[[type], type]]


@lazy.dataclass(frozen=True, slots=True)
class Base:
    """A base with slots."""

    kind: ClassVar[str] = "base"
    x: int


@lazy.dataclass(frozen=True, slots=True)
class Point(Base):
    """A point, which is pickled by its module."""

    y: int = 2
    rest: list[int] = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")

    def __str__(self) -> str:
        return super().__repr__()


def declared(decorator: Decorator, options: dict[str, bool]) -> type:
    @decorator(**options)
    class Thing:
        """A class with every kind of field."""

        kind: ClassVar[str] = "thing"
        x: int
        y: float = 2.0
        z: list[int] = dataclasses.field(default_factory=list)

    return Thing


OPTIONS = [
    {"frozen": True, "slots": True},
    {"frozen": True},
    {},
    {"eq": False, "repr": False},
    {"frozen": True, "slots": True, "eq": False},
]


def facts(cls: type) -> dict[str, object]:
    """Return what can be observed of a class and its instances."""
    a, b = cls(1), cls(1, 2.0, [])

    def outcome(run: Callable[[], object]) -> object:
        try:
            return run()
        except (TypeError, AttributeError) as error:
            return type(error)

    return {
        "fields": [(f.name, f.type, f.compare) for f in dataclasses.fields(cls)],
        "match": cls.__match_args__,  # type: ignore[attr-defined]  # each dataclass has it
        "equal": a == b,
        "hashable": isinstance(outcome(lambda: hash((cls(1, 2.0, ()),))), int),
        "same hash": outcome(lambda: hash(cls(1, 2.0, ())) == hash(cls(1, 2.0, ()))),
        "repr": repr(a).partition(" object at ")[0],
        "set": outcome(lambda: setattr(a, "x", 3)),
        # The standard one raises TypeError here where it has slots.
        "unknown": outcome(lambda: setattr(a, "unknown", 3)) is None,
        "dict": hasattr(a, "__dict__"),
        "signature": str(inspect.signature(cls)),
        "attributes": sorted(name for name in vars(cls) if name in ("x", "y", "z", "kind")),
        "default": outcome(lambda: cls.y == 2.0),  # type: ignore[attr-defined]  # where it has no slots
        "replaced": dataclasses.replace(a, x=5).x,
    }


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_lazy_dataclass_is_the_standard_one(options: dict[str, bool]) -> None:
    assert facts(declared(lazy.dataclass, options)) == facts(
        declared(dataclasses.dataclass, options)
    )


def test_nothing_is_generated_before_use_and_everything_by_any_use() -> None:
    cls = declared(lazy.dataclass, {"frozen": True, "slots": True})
    assert "__init__" in vars(cls) and not inspect.isfunction(vars(cls)["__init__"])
    assert dataclasses.is_dataclass(cls)
    assert all(inspect.isfunction(vars(cls)[name]) for name in ("__init__", "__eq__", "__hash__"))


def test_fields_are_inherited_and_instances_are_checked_pickled_and_matched() -> None:
    point = Point(1)
    match point:
        case Point(x, y, rest):
            assert (x, y, rest) == (1, 2, [])
    assert pickle.loads(pickle.dumps(point)) == point
    assert str(point) == "Point(x=1)"
    with pytest.raises(ValueError, match="negative"):
        Point(-1)

    @dataclasses.dataclass(frozen=True, slots=True)
    class Further(Point):
        """A standard dataclass below a lazy one."""

        z: int = 3

    assert Further(1, z=4) == Further(1, 2, [], 4) and not hasattr(Further(1), "__dict__")


def test_threads_may_use_a_class_first_at_the_same_time() -> None:
    cls = declared(lazy.dataclass, {"frozen": True})
    barrier, made = Barrier(4), []

    def make() -> None:
        barrier.wait()
        made.append(cls(1))

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [cls(1)] * 4
