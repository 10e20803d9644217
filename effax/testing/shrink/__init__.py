"""Shrink programs that break a law."""
