"""Batching: one program over a batch of arguments."""
