"""Partial evaluation: a program as a known jaxpr and an unknown jaxpr."""
