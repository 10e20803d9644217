"""Steps of growth, by family of primitives."""
