"""Functionalization of checks: errors become values."""
