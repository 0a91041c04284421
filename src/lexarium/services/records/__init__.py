"""Read records: lookups, lists, history, statistics."""
