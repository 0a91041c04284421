"""Repeatable benchmarks: `python -m benchmarks.read` from the repository's root."""
