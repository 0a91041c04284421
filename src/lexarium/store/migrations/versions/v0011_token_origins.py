"""Origin and parent of a token, so that revoking a token also revokes those that were made with it."""

import sqlalchemy as sa
from alembic import op

from lexarium.store.schema import CodePointText

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the columns. Of older tokens only those of sessions are known, by their label."""
    origin = sa.Column("origin", CodePointText, nullable=False, server_default="unknown", comment="how it was made")
    op.add_column("token", origin)
    op.add_column("token", sa.Column("parent", CodePointText, comment="the token that it was made with"))
    op.create_index("token_by_parent", "token", ["parent"])
    op.execute("UPDATE token SET origin = 'sign-in' WHERE label = 'signed in' AND expires IS NOT NULL")
