"""The mesh in use, and meshes without devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import ParamSpec, TypeVar, cast

from effax.arrays.argument_checks import axis_names_of, integers
from effax.arrays.array import Array
from effax.arrays.mesh import MESHES, AxisType, Mesh, make_mesh, use_meshes
from effax.arrays.sharding import resolved
from effax.ir.errors import BadArgument
from effax.ir.types import Unsharded

__all__ = [
    "AbstractMesh", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh", "set_mesh",
    "use_abstract_mesh",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


class AbstractMesh:
    """The names and sizes of a mesh's axes, without devices.

    Args:
        axis_sizes: the sizes of the axes.
        axis_names: one name an axis.
        axis_types: one type an axis, or one for all; ``AxisType.Auto`` if left out.

    Raises:
        BadArgument: the numbers of sizes, names and types differ.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4)
    """

    __slots__ = ("_devices", "_mesh")

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        sizes = integers(axis_sizes, "AbstractMesh: axis_sizes")
        names = axis_names_of(axis_names, "AbstractMesh: axis_names") if sizes else ()
        self._mesh = Mesh(sizes, names, axis_types)
        self._devices: Mesh | None = None

    def on_devices(self) -> Mesh:
        """Return the mesh that it is made of, else one over devices, as far as there are enough."""
        if self._devices is not None:
            return self._devices
        return make_mesh(self.axis_sizes, self.axis_names, self.axis_types)

    def with_manual(self, names: Collection[str]) -> AbstractMesh:
        """Return the mesh with these axes of ``AxisType.Manual``."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = [AxisType.Manual if name in names else kind for name, kind in pairs]
        made = AbstractMesh(self.axis_sizes, self.axis_names, types)
        made._devices = self._devices
        return made

    def _of_type(self, kind: AxisType) -> tuple[str, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, own in pairs if own is kind])

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Auto``."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Explicit``."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """Return the names of the axes of ``AxisType.Manual``: those of a ``shard_map`` around."""
        return self._of_type(AxisType.Manual)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Return the names of the axes."""
        return self._mesh.axis_names

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the axes."""
        return self._mesh.axis_sizes

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """Return the types of the axes."""
        return self._mesh.axis_types

    @property
    def shape(self) -> dict[str, int]:
        """Return the sizes of the axes, by name."""
        return self._mesh.shape

    @property
    def size(self) -> int:
        """Return the number of devices that the mesh would have."""
        return self._mesh.size

    @property
    def empty(self) -> bool:
        """Return whether the mesh has no axes."""
        return self._mesh.empty

    @property
    def are_all_axes_auto(self) -> bool:
        """Return whether every axis is of ``AxisType.Auto``."""
        return self._mesh.are_all_axes_auto

    @property
    def are_all_axes_explicit(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Explicit``."""
        return self._mesh.are_all_axes_explicit

    @property
    def are_all_axes_manual(self) -> bool:
        """Return whether there are axes, all of ``AxisType.Manual``."""
        return self._mesh.are_all_axes_manual

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._mesh == other._mesh

    def __hash__(self) -> int:
        return hash(("abstract", self._mesh))

    def __repr__(self) -> str:
        return f"Abstract{self._mesh!r}"


def abstract(mesh: Mesh | AbstractMesh) -> AbstractMesh:
    """Return a mesh without its devices."""
    if isinstance(mesh, AbstractMesh):
        return mesh
    made = AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)
    made._devices = mesh
    return made


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
