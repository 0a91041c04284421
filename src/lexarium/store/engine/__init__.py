"""SQLite and PostgreSQL, and the position that both keep."""
