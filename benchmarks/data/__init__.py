"""Generated input."""
