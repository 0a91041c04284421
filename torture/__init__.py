"""Long-running fault injection and fuzzing: `make torture`."""
