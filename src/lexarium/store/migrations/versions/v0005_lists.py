"""Indexes for lists of the members of a class, and of flagged records."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the indexes."""
    op.create_index("change_by_class", "change", ["collection", "class_id", "name_key", "record"])
    flagged = sa.text("flagged")
    op.create_index(
        "change_flagged",
        "change",
        ["collection", "name_key", "record"],
        sqlite_where=flagged,
        postgresql_where=flagged,
    )
