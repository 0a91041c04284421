"""State of imports: staged files, base values, mirrored servers."""
