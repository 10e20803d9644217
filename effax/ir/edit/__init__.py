"""Edits: functions from a program to a program that shares what did not change."""
