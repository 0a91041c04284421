"""Counter of writes, with which a node sees whether a standby has all writes that it has seen."""

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
