"""Rules of transformations, by family of primitives; ``rules`` puts them together."""
