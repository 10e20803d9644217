"""Rules of transformations, by family of primitives; ``book`` puts them together."""
