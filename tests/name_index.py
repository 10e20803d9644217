"""The index of names of lazy packages, effax/lazy/index.py, from their imports."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import Final

from effax.lazy.packages import origins

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "effax" / "lazy" / "index.py"
_HEAD: Final = '''\
"""The modules of names that lazy packages import on first use; ``make surface`` writes this file.

Names follow their module; ``name=original`` is imported under another name, and the package itself
has its modules. In ``SHADOWED`` are names of functions that modules of the package have too.
"""

from __future__ import annotations

from typing import Final
'''


def lazy_packages() -> list[str]:
    """Return the packages that import names on first use."""
    paths = [
        path for path in ROOT.glob("effax/**/__init__.py") if "_lazy(" in path.read_text("utf-8")
    ]
    return sorted(".".join(path.parent.relative_to(ROOT).parts) for path in paths)


def entries(package: str) -> dict[str, list[str]]:
    """Return the entries of a package by module, sorted."""
    import_module(package)
    found: dict[str, list[str]] = {}
    for name, (module, original) in sorted(origins(package).items()):
        entry = name if original in ("", name) else f"{name}={original}"
        found.setdefault(module if original else package, []).append(entry)
    return dict(sorted(found.items()))


def shadowed(package: str) -> list[str]:
    """Return the names of functions that modules of the package have too."""
    folder = ROOT.joinpath(*package.split("."))
    return [
        name
        for name, (_, original) in sorted(origins(package).items())
        if original and ((folder / f"{name}.py").exists() or (folder / name).is_dir())
    ]


def page() -> str:
    """Return the whole file."""
    packages = lazy_packages()
    index = {package: _lines(package) for package in packages}
    shadows = {package: wrap(" ".join(shadowed(package)), 96) for package in packages}
    return f"{_HEAD}\n{_dict('INDEX', index)}\n{_dict('SHADOWED', shadows)}"


def _lines(package: str) -> list[str]:
    parts = [f"{module}: {' '.join(names)}" for module, names in entries(package).items()]
    return [line for part in parts for line in wrap(part, 96, break_on_hyphens=False)]


def _dict(name: str, values: dict[str, list[str]]) -> str:
    items = [
        f'    "{package}": """\\\n' + "\n".join(lines) + '\n""",\n'
        for package, lines in values.items()
        if lines
    ]
    return f"{name}: Final[dict[str, str]] = {{\n{''.join(items)}}}\n"
