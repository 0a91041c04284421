"""The first tables. Nothing is left to do: a new database gets the current tables, and no database is older."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    pass
