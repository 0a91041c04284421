"""Import, export and mirroring."""
