"""Lexarium: a terminology catalogue service."""

__version__ = "0.2.0"
