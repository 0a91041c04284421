"""Base values: imported values that were not applied because people had edited the record."""

import sqlalchemy as sa
from alembic import op

from lexarium.store.schema import CodePointText

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "upstream",
        sa.Column("record", CodePointText, primary_key=True),
        sa.Column("untaken", sa.LargeBinary, nullable=False, comment="as JSON: what imports told, field by field"),
    )
