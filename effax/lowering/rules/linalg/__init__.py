"""Lowering of factorisations of matrices."""
