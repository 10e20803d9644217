"""Start several processes of one program: ``python -m effax.launch -n 4 --devices 2 train.py``."""

from __future__ import annotations

from effax.launch.command import main
from effax.launch.workers import LaunchOptions, launch

__all__ = ["LaunchOptions", "launch", "main"]
