"""The catalogue: records, relations, the log; accounts, tokens, proposals, releases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PUBLISHED_HITS = sa.text("hit_length > 0 AND state = 'published'")


def upgrade() -> None:
    """Make every table of the first version."""
    op.create_table(
        "catalogue",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1", name="catalogue_is_one"), primary_key=True),
        sa.Column("epoch", sa.Text, nullable=False, comment="minted when the database is made or restored"),
        sa.Column("revision", sa.BigInteger, nullable=False, comment="the last seq of the log"),
    )
    op.create_table(
        "record",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("collection", KEY, nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("order_key", KEY, nullable=False),
        sa.Column("name_key", KEY, nullable=False),
        sa.Column("hit_length", sa.Integer, nullable=False, comment="how much of body is the search hit; 0: none"),
        sa.Column("body", sa.LargeBinary, nullable=False, comment="the rendered record, as served"),
        sa.Index("record_in_order", "collection", "state", "order_key", "id"),
        sa.Index("record_by_name", "collection", "name_key"),
    )
    op.create_index(
        "record_hits",
        "record",
        ["order_key", "id"],
        sqlite_where=PUBLISHED_HITS,
        postgresql_where=PUBLISHED_HITS,
    )
    op.create_table(
        "relation",
        sa.Column("source", KEY, primary_key=True),
        sa.Column("relation", KEY, primary_key=True),
        sa.Column("target", KEY, primary_key=True),
        sa.Index("relation_by_target", "target", "relation"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "change",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", KEY, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False, comment="the first seq of the write that made this change"),
        sa.Column("action", KEY, nullable=False),
        sa.Column("collection", KEY, nullable=False),
        sa.Column("record", KEY, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("order_key", KEY, nullable=False),
        sa.Column("name_key", KEY, nullable=False),
        sa.Column("class_id", KEY, nullable=False),
        sa.Column("owner", KEY, nullable=False),
        sa.Column("flagged", sa.Boolean, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False, comment="the whole record from this change on"),
        sa.Index("change_of_record", "record", "version", unique=True),
        sa.Index("change_in_order", "collection", "order_key", "record"),
        sa.Index("change_by_name", "collection", "name_key", "record"),
        sa.Index("change_in_batch", "batch"),
    )
    op.create_table(
        "account",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", KEY, nullable=False, unique=True),
        sa.Column("role", KEY, nullable=False),
        sa.Column("password", sa.Text, comment="argon2 hash"),
        sa.Column("created", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "token",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("account", KEY, sa.ForeignKey("account.id"), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("role", KEY, nullable=False),
        sa.Column("hash", KEY, nullable=False, unique=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger),
        sa.Column("used", sa.BigInteger),
        sa.Column("revoked", sa.BigInteger),
    )
    op.create_table(
        "proposal",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("collection", KEY, nullable=False),
        sa.Column("record", KEY, comment="none: a new one is proposed"),
        sa.Column("base_version", sa.Integer),
        sa.Column("change", sa.LargeBinary, nullable=False, comment="the fields proposed, as JSON"),
        sa.Column("author", KEY, sa.ForeignKey("account.id"), nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("decider", KEY),
        sa.Column("decided", sa.BigInteger),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Index("proposal_by_state", "state", "made", "id"),
    )
    op.create_table(
        "release",
        sa.Column("name", KEY, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("author", KEY, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "idempotency",
        sa.Column("account", KEY, primary_key=True),
        sa.Column("key", KEY, primary_key=True),
        sa.Column("request", KEY, nullable=False, comment="hash of method, path and body"),
        sa.Column("answer", sa.LargeBinary, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Index("idempotency_by_age", "made"),
    )
