"""Run each test file of this folder in a process of its own, which has several CPU devices.

The number of devices of a process is fixed when XLA starts. A process that hangs is ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DEVICES = 8
LIMIT = 300
"""Seconds that a file may take."""

DEEP_LIMIT = 3600
"""Seconds that a file may take with another number of random programs."""


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if os.environ.get("JAX_NUM_CPU_DEVICES") == str(DEVICES):
        return None
    made: pytest.Module = FileOnDevices.from_parent(parent, path=module_path)
    return made


class FileOnDevices(pytest.Module):
    """A test file, collected as one test without an import."""

    def collect(self) -> Iterator[pytest.Item]:
        item: RunOnDevices = RunOnDevices.from_parent(self, name="on_devices")
        item.add_marker("slow")
        yield item


class FailedOnDevices(Exception):
    """The output of a process whose tests failed."""


class RunOnDevices(pytest.Item):
    """The tests of a file, run by another process."""

    def runtest(self) -> None:
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        profile = self.config.getoption("--hypothesis-profile")
        if profile is not None:
            options.append(f"--hypothesis-profile={profile}")
        command = [sys.executable, "-m", "pytest", *options, str(self.path)]
        env = {**os.environ, "JAX_NUM_CPU_DEVICES": str(DEVICES), "PYTEST_ADDOPTS": ""}
        done = subprocess.run(
            command,
            env=env,
            timeout=LIMIT if profile is None else DEEP_LIMIT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.config.rootpath,
        )
        if done.returncode:
            raise FailedOnDevices(done.stdout)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name} on {DEVICES} devices"
