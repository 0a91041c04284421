"""Documents of the log hold statements. Those of before stay as they are, and an earlier Lexarium reads only those."""

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Change no table: the version alone keeps an earlier Lexarium from reading what it does not know."""
