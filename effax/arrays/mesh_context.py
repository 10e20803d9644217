"""The mesh in use, and meshes without devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import ParamSpec, TypeVar, cast

from effax.arrays.array import Array
from effax.arrays.mesh import MESHES, AbstractMesh, Mesh, abstract, use_meshes
from effax.arrays.sharding import resolved
from effax.ir.errors import BadArgument
from effax.ir.types import Unsharded

__all__ = [
    "AbstractMesh", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh", "set_mesh",
    "use_abstract_mesh",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


def inside_of(mesh: Mesh, names: Collection[str]) -> AbstractMesh:
    """Return the mesh in use inside of a ``shard_map`` over these axes of ``mesh``."""
    outer = _current()
    manual = outer.manual_axes if isinstance(outer, AbstractMesh) else ()
    return abstract(mesh).with_manual({*names, *manual})


def _current() -> Mesh | AbstractMesh | None:
    meshes = cast("tuple[Mesh | AbstractMesh, ...]", MESHES.get())
    return meshes[-1] if meshes else None


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh of :func:`set_mesh`, without devices; without one, a mesh without axes.

    >>> get_abstract_mesh().empty
    True
    """
    mesh = _current()
    return AbstractMesh((), ()) if mesh is None else abstract(mesh)


def get_mesh() -> Mesh | AbstractMesh:
    """Return the mesh of :func:`set_mesh`; without one, a mesh without axes."""
    mesh = _current()
    return AbstractMesh((), ()) if mesh is None else mesh


class set_mesh:  # noqa: N801
    """Use a mesh from now on, in this thread; as a context, until its end.

    Raises:
        BadArgument: ``mesh`` is not a mesh.

    >>> with set_mesh(AbstractMesh((2,), ("x",))):
    ...     get_abstract_mesh()
    AbstractMesh('x': 2)
    """

    def __init__(self, mesh: Mesh | AbstractMesh) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise BadArgument(
                "set_mesh takes a mesh",
                expected="a Mesh: `effax.make_mesh((1,), ('x',))`",
                found=f"{type(mesh).__name__}: {mesh!r:.60}",
            )
        self._before = MESHES.get()
        use_meshes((mesh,))

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        use_meshes(self._before)


use_abstract_mesh = set_mesh


def auto_axes(
    fun: Callable[P, R] | None = None,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: object = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Return ``fun``: the shardings inside of a function are always found, on one device.

    Args:
        fun: a function; without it a decorator is returned.
        axes: axes of the mesh.
        out_sharding: the sharding of the results.
    """
    del axes, out_sharding
    return (lambda f: f) if fun is None else fun


def explicit_axes(
    fun: Callable[P, R] | None = None,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: object = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Return ``fun``: shardings inside of a function change no value, on one device.

    Args:
        fun: a function; without it a decorator is returned.
        axes: axes of the mesh.
        in_sharding: the sharding of the arguments.
    """
    del axes, in_sharding
    return (lambda f: f) if fun is None else fun


def constrained(x: Array, place: object, what: str) -> Array:
    """Return an array with a sharding; that of a specification is over the mesh in use.

    Raises:
        BadArgument: ``place`` is neither, or there is no mesh in use.
        IllTyped: the sharding does not divide the array.
    """
    if place is None or isinstance(place, Unsharded):
        return x
    sharding = resolved(place, what)
    sharding.shard_shape(x.shape)
    return x.placed(sharding)
