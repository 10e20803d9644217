"""Analyses: pure functions from a program to facts about it."""
