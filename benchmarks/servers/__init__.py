"""Compared servers: one module each, with a function that prepares it."""
