"""Formulas of special functions, written once and applied to NumPy arrays and in programs."""
