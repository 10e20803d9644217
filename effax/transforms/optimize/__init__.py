"""Passes that preserve meaning and make programs smaller or cheaper."""
