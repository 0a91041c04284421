"""Accounts, tokens, passwords and permissions."""
