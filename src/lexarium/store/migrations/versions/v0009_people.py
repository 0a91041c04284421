"""Indexes for tokens and proposals by account, state and record, and for admins."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the indexes."""
    op.create_index("account_by_role", "account", ["role"])
    op.create_index("token_in_order", "token", ["created", "id"])
    op.create_index("token_of_account", "token", ["account", "created", "id"])
    op.create_index("proposal_by_state_of_author", "proposal", ["state", "author", "made", "id"])
    op.create_index("proposal_of_author", "proposal", ["author", "made", "id"])
    is_open = sa.text("state = 'open'")
    columns = ["record", "made", "id"]
    op.create_index("proposal_waits", "proposal", columns, sqlite_where=is_open, postgresql_where=is_open)
