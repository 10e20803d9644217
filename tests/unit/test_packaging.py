"""The built wheel is complete, and installs no other names."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import effax

pytestmark = pytest.mark.slow

ROOT = Path(effax.__file__).parents[1]

# Imports every module of the package, wherever it finds it.
IMPORT_ALL = """
import importlib, pkgutil, effax
for module in pkgutil.walk_packages(effax.__path__, "effax."):
    importlib.import_module(module.name)
print(effax.__file__, effax.__version__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside of this checkout and return its output."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a fresh environment into which the wheel is installed."""
    pytest.importorskip("hatchling", reason="builds a wheel, for which hatchling is not installed")
    base = tmp_path_factory.mktemp("packaging")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", base, ROOT, cwd=base)
    (wheel,) = base.glob("*.whl")
    venv.create(base / "env", symlinks=True)
    python = base / "env" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=base)
    return python


def site_packages(python: Path) -> Path:
    (found,) = python.parents[1].glob("lib/python*/site-packages")
    return found


def test_the_wheel_installs_no_other_name_than_effax(installed: Path) -> None:
    names = {path.name for path in site_packages(installed).iterdir() if path.suffix != ".pth"}
    assert names == {"effax", f"effax-{effax.__version__}.dist-info"}


def test_the_wheel_contains_the_whole_package_and_is_marked_as_typed(installed: Path) -> None:
    def files(package: Path) -> set[str]:
        return {
            path.relative_to(package).as_posix()
            for path in package.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }

    assert files(site_packages(installed) / "effax") == files(ROOT / "effax")
    assert "py.typed" in files(site_packages(installed) / "effax")


def test_the_wheel_contains_its_licence(installed: Path) -> None:
    (licence,) = site_packages(installed).glob("effax-*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_every_module_imports_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    # The wheel's dependencies are those of this environment, by a path that brings no .pth files
    # along, and so not the editable effax that may be installed here.
    dependencies = site_packages(installed) / "dependencies.pth"
    dependencies.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    where, version = run(installed, "-c", IMPORT_ALL, cwd=tmp_path).split()
    assert Path(where) == site_packages(installed) / "effax" / "__init__.py"
    assert version == effax.__version__
