"""Model and rules of a vocabulary; no I/O."""
