"""PostgreSQL's timeline at the last write, with which a node sees whether a promotion has lost writes."""

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
