"""The parts that families of primitives share: operand checks, and semantics on NumPy arrays."""
