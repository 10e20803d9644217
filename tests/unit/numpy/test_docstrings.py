"""Docstrings of the array functions: every argument is described, every example runs."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

import pytest

import effax

MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers"),
    *(
        "random",
        "image",
        "ops",
        "scipy.linalg",
        "scipy.special",
        "scipy.cluster.vq",
        "scipy.fft",
        "scipy.integrate",
        "scipy.ndimage",
        "scipy.signal",
        "scipy.optimize",
        "scipy.sparse.linalg",
        "scipy.stats",
        *[
            f"scipy.stats.{name}"
            for name in effax.scipy.stats.__all__
            if name.islower() and isinstance(getattr(effax.scipy.stats, name), ModuleType)
        ],
    ),
)
GLOBALS = {
    "effax": effax,
    "jax": effax,
    "jnp": effax.numpy,
    "lax": effax.lax,
    "nn": effax.nn,
    "random": effax.random,
    "linalg": effax.scipy.linalg,
    "special": effax.scipy.special,
    "fft": effax.scipy.fft,
    "integrate": effax.scipy.integrate,
    "ndimage": effax.scipy.ndimage,
    "signal": effax.scipy.signal,
    "vq": effax.scipy.cluster.vq,
    "optimize": effax.scipy.optimize,
    "sparse": effax.scipy.sparse,
    "stats": effax.scipy.stats,
}


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    """Public functions of a module, aliases left out."""
    seen = set[int]()
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def faults(name: str, function: Callable[..., object]) -> Iterator[str]:
    """Report the sections that a docstring lacks."""
    doc = inspect.getdoc(function) or ""
    if ">>> " not in doc:
        yield f"{name} has no example"
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) < 2:
        return
    section = re.search(r"\nArgs:\n((?:    .*\n)+)", doc)
    described = re.findall(r"^    \*{0,2}(\w+):", section[1], re.MULTILINE) if section else []
    if described != parameters:
        yield f"{name} has arguments {parameters}, and describes {described}"
    if "\nReturns:\n" not in doc and inspect.signature(function).return_annotation != "None":
        yield f"{name} has no section of returns"


@pytest.mark.parametrize("module", MODULES)
def test_every_argument_is_described(module: str) -> None:
    found = functions(import_module(f"effax.{module}"))
    assert [fault for name, f in found for fault in faults(name, f)] == []


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_every_example_prints_its_output(module: str) -> None:
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    parser = doctest.DocTestParser()
    report: list[str] = []
    for name, function in functions(import_module(f"effax.{module}")):
        doc = inspect.getdoc(function) or ""
        runner.run(parser.get_doctest(doc, GLOBALS, name, None, None), out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)
