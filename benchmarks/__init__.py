"""Benchmarks anyone can repeat: `python -m benchmarks.read` from the repository's root."""
