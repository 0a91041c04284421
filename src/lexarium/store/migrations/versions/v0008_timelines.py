"""On which of PostgreSQL's timelines was last written, so that it can be told what a promotion has lost."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns."""
    for name, comment in (
        ("timeline", "PostgreSQL's, at the last write"),
        ("parted", "writes when that timeline began"),
    ):
        op.add_column("catalogue", sa.Column(name, sa.BigInteger, nullable=False, server_default="0", comment=comment))
