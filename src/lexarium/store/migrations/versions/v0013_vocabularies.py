"""Several vocabularies: names in further languages, alternative ids, and roles in single vocabularies."""

import sqlalchemy as sa
from alembic import op

from lexarium.store.schema import alternative_id_table, import_statement_table, label_table, membership_table

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the tables. Records stay as they are, in the main vocabulary, and none has anything to put into them."""
    comment = "counts their changes"
    column = sa.Column("vocabularies", sa.BigInteger, nullable=False, server_default="0", comment=comment)
    op.add_column("catalogue", column)
    for table in (alternative_id_table, import_statement_table, label_table, membership_table):
        table.create(op.get_bind())
