"""Rules for text."""
