"""Measuring: servers, load, reports."""
