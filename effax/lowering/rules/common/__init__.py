"""Helpers that the lowering rules of several families share."""
