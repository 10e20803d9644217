"""Lowering of indexed reads and updates."""
