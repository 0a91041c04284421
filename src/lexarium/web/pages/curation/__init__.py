"""Pages for people who edit records."""
