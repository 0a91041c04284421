"""Comments, reasons of decisions with what they changed, and notifications."""

import sqlalchemy as sa
from alembic import op

from lexarium.store.schema import comment_table

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the table and the columns. Decisions of before count as new notifications."""
    comment_table.create(op.get_bind())
    summary = sa.Column("summary", sa.Text, nullable=False, server_default="", comment="what the author says about it")
    op.add_column("proposal", summary)
    amended = sa.Column(
        "amended", sa.Boolean, nullable=False, server_default=sa.false(), comment="accepted with other values"
    )
    op.add_column("proposal", amended)
    op.create_index("proposal_by_decision", "proposal", ["author", "decided", "id"])
    comment = "until when it has seen notifications"
    op.add_column("account", sa.Column("notified", sa.BigInteger, nullable=False, server_default="0", comment=comment))
    is_person = sa.text("actor <> 'usr_0000000000'")
    op.create_index("change_of_person", "change", ["actor", "seq"], sqlite_where=is_person, postgresql_where=is_person)
