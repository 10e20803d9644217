"""Experiments of JAX that programs name: classes to declare, refused where used."""

from __future__ import annotations

import pytest

from effax.arrays.layout import Format, Layout
from effax.drop_in import hijax, private, sparse
from effax.ir.errors import NotSupported


def test_types_of_users_are_declared_and_refused_where_made() -> None:
    class Positive(hijax.HiType):
        double = hijax.aval_method(lambda x: 2 * x)
        half = hijax.aval_property(lambda x: x / 2)

    class Make(hijax.HiPrim):
        pass

    hijax.register_hitype(Positive, type)
    with pytest.raises(NotSupported, match=r"Make: user-defined types .*\n.*trees"):
        Make()


def test_sparse_arrays_are_refused() -> None:
    assert not isinstance(1.0, sparse.BCOO)
    with pytest.raises(NotSupported, match="sparse arrays are not supported"):
        sparse.BCOO.fromdense([[1.0]])


def test_formats_compare_by_value() -> None:
    assert Format(Layout((0, 1))) == Format(Layout((0, 1))) != Format()


def test_private_names_of_libraries() -> None:
    assert dict in private._registry and float not in private._registry
    assert private.dtype(1.0) == "float32"
