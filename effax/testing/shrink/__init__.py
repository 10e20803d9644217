"""Shrinking: smaller programs that break the same law."""
