"""The OBO format."""
