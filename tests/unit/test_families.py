"""One family of primitives has one name in every layer, and no primitive is in two."""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Final

import pytest

from effax.ir import prims
from effax.ir.families import FAMILIES, declared, family_module
from effax.ir.registry import own_primitives
from effax.lowering.writer import LoweringRules
from effax.testing.generate.steps import FAMILY_STEPS
from effax.transforms.framework.rules import RuleSet

LAYERS: Final = (
    "effax.ir.prims",
    "effax.transforms.rules",
    "effax.lowering.rules",
    "effax.testing.generate",
)

FAMILY_RULES: Final = declared("effax.transforms.rules", "RULES", RuleSet)
LOWERING_RULES: Final = declared("effax.lowering.rules", "RULES", LoweringRules)

MISSING: Final = {
    ("effax.lowering.rules", "refs"): "references are discharged before a program is lowered",
    ("effax.testing.generate", "conv"): "convolutions have too many parameters for one step",
    ("effax.testing.generate", "fft"): "transforms take dtypes and sizes that few values have",
    ("effax.testing.generate", "linalg"): "factorisations are differentiable away from ties only",
    ("effax.testing.generate", "special"): "their programs are long, and slow to compile",
    (
        "effax.testing.generate",
        "check",
    ): "checks have laws of their own: checkify's",
    ("effax.testing.generate", "host"): "callbacks have laws of their own: testing.laws.host",
}
"""The families that a layer lacks, and why."""


@pytest.mark.parametrize("layer", LAYERS)
def test_every_family_is_in_every_layer(layer: str) -> None:
    lacking = {(layer, f) for f in FAMILIES if family_module(layer, f) is None}
    assert lacking == {entry for entry in MISSING if entry[0] == layer}


@pytest.mark.parametrize("layer", LAYERS[:3])
def test_a_layer_has_families_and_shared_parts_only(layer: str) -> None:
    spec = find_spec(layer)
    assert spec is not None and spec.submodule_search_locations
    found = {module.name for module in iter_modules(spec.submodule_search_locations)}
    assert sorted(found - set(FAMILIES)) in (["common"], ["common", "default"])


def test_every_family_lists_its_primitives() -> None:
    names = declared(prims.__name__, "__all__", list)
    assert sorted(names) == sorted(FAMILIES)
    for prim in own_primitives().values():
        (family,) = [f for f, listed in names.items() if prim.__name__ in listed]
        assert prim.__module__ == f"{prims.__name__}.{family}"


def test_the_rules_of_a_primitive_are_in_its_family() -> None:
    for family, rules in FAMILY_RULES.items():
        assert {prim.__module__ for prim in rules.rules} == {f"{prims.__name__}.{family}"}
    assert {p for rules in FAMILY_RULES.values() for p in rules.rules} == set(
        own_primitives().values()
    )


def test_the_lowering_of_a_primitive_is_in_its_family() -> None:
    own = set(own_primitives().values())
    for family, rules in LOWERING_RULES.items():
        modules = {prim.__module__ for prim in rules.rules if prim in own}
        assert modules == {f"{prims.__name__}.{family}"}
    claimed = [prim for rules in LOWERING_RULES.values() for prim in rules.rules]
    assert len(claimed) == len(set(claimed))


def test_every_family_of_steps_has_some() -> None:
    lacking = {family for _, family in MISSING if family not in FAMILY_STEPS}
    assert set(FAMILIES) - set(FAMILY_STEPS) == lacking - {"refs"}
