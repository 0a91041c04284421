"""Collections, fields and relation types."""
