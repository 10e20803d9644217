"""Transposition of linear programs."""
