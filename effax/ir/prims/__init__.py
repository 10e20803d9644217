"""The primitives, by family."""
