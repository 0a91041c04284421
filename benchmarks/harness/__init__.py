"""Servers, load, measurements and reports."""
