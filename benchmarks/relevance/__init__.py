"""Relevance of search: how often the records that should come first do."""
