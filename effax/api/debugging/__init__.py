"""Debugging: prints and callbacks, exploration of a program, the first faulty equation."""
