"""Webhooks, the log of their deliveries, and leases."""

import sqlalchemy as sa
from alembic import op

from lexarium.store.schema import BigInt, CodePointText

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "webhook",
        sa.Column("id", CodePointText, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("collections", sa.Text, nullable=False, comment="with spaces between; empty: all"),
        sa.Column("actions", sa.Text, nullable=False, comment="with spaces between; empty: all"),
        sa.Column("seq", sa.BigInteger, nullable=False, comment="the last change delivered or passed over"),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, comment="how often the next change was tried in vain"),
        sa.Column("due", sa.BigInteger, nullable=False, comment="not to be tried before"),
        sa.Column("failing", sa.BigInteger, comment="since when nothing could be delivered"),
        sa.Column("disabled", sa.BigInteger),
    )
    op.create_table(
        "delivery",
        sa.Column("id", BigInt, primary_key=True),
        sa.Column("webhook", CodePointText, sa.ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Integer, comment="none: there was no answer"),
        sa.Column("error", sa.Text, nullable=False),
        sa.Index("delivery_of_webhook", "webhook", "id"),
    )
    op.create_table(
        "lease",
        sa.Column("name", CodePointText, primary_key=True),
        sa.Column("holder", CodePointText, nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
    )
