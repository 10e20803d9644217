"""Experiments of JAX that programs name: classes to declare, refused where used."""

from __future__ import annotations

import pytest

import effax
import effax.numpy as jnp
from effax.arrays.layout import Format, Layout
from effax.drop_in import exporting, hijax, names, private, xla_metadata
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


def test_formats_compare_by_value() -> None:
    assert Format(Layout((0, 1))) == Format(Layout((0, 1))) != Format()


def test_private_names_of_libraries() -> None:
    assert dict in private._registry and float not in private._registry
    assert private.dtype(1.0) == "float32"


def test_names_with_fixed_values() -> None:
    check = exporting.DisabledSafetyCheck
    assert check.custom_call("f") == check.custom_call("f") != check.platform()
    assert exporting.default_export_platform() == "cpu"
    assert names.get_default_device() == effax.devices()[0]
    assert issubclass(names.KeyReuseError, TypeError)


def test_a_policy_returns_what_is_saved_by_name() -> None:
    def policy(prim: object, *types: object, **params: object) -> bool:
        return names.Saveable if str(prim) == "sin" else names.Recompute

    f = effax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)
    assert float(effax.grad(f)(0.0)) == 1.0


def test_metadata_are_accepted() -> None:
    with xla_metadata.set_xla_metadata(key="value"):
        assert xla_metadata.set_xla_metadata(2.0, key="value") == 2.0
    assert xla_metadata.xla_metadata_call(key="value")(abs)(-1) == 1
    assert xla_metadata.xla_metadata_call(abs, key="value") is abs
