"""The catalogue on disk: SQLAlchemy Core on SQLite or PostgreSQL. SQL lives here and nowhere else."""
