"""Counter of changes to accounts and tokens, so that callers seen before need not be looked up again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column, and an index that the first databases were made without."""
    column = sa.Column("accounts", sa.BigInteger, nullable=False, server_default="0", comment="counts their changes")
    op.add_column("catalogue", column)
    op.create_index("change_by_name", "change", ["collection", "name_key", "record"], if_not_exists=True)
