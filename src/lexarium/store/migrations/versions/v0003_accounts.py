"""A count of the changes of accounts and tokens, so that who was let in before need not be looked up again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column."""
    column = sa.Column("accounts", sa.BigInteger, nullable=False, server_default="0", comment="counts their changes")
    op.add_column("catalogue", column)
