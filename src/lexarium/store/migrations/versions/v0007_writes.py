"""A count of all that was ever written, so that it can be told whether a standby has all that a node has seen."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column."""
    column = sa.Column(
        "writes", sa.BigInteger, nullable=False, server_default="0", comment="counts all that is written"
    )
    op.add_column("catalogue", column)
