"""Change records: drafts, validation, merges."""
