"""Backup and integrity checks."""
