"""Analyses: functions from a program to facts about it, which change nothing."""
