"""Passes over programs with named axes."""
