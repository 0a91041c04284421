"""Breaking things on purpose, for longer than a test may take: `make torture`."""
