"""Search, annotation and reconciliation."""
