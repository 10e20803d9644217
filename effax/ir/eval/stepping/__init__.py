"""Evaluation one equation at a time: states as values, and pure functions from state to state."""
