"""Tables, the same for both engines. A new database gets them as they are here; migrations change older ones."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

metadata = sa.MetaData()

# Sorted by code point, whatever the server's collation. SQLite does that by default.
CodePointText = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite assigns ids only in a column declared INTEGER.
BigInt = BigInteger().with_variant(Integer(), "sqlite")


def _add_partial_index(name: str, *columns: Column[Any], where: str) -> None:
    # `upgrade.create_tables` makes it partial on PostgreSQL: declaring that here would load the dialect, which is slow.
    Index(name, *columns, sqlite_where=sa.text(where))


catalogue_table = Table(
    "catalogue",
    metadata,
    Column("id", Integer, sa.CheckConstraint("id = 1", name="catalogue_is_one"), primary_key=True),
    Column("epoch", Text, nullable=False, comment="minted when the database is made or restored"),
    Column("revision", BigInteger, nullable=False, comment="the last seq of the log"),
    Column("accounts", BigInteger, nullable=False, server_default="0", comment="counts their changes"),
    Column("writes", BigInteger, nullable=False, server_default="0", comment="counts all that is written"),
    Column("timeline", BigInteger, nullable=False, server_default="0", comment="PostgreSQL's, at the last write"),
    Column("parted", BigInteger, nullable=False, server_default="0", comment="writes when that timeline began"),
    Column("vocabularies", BigInteger, nullable=False, server_default="0", comment="counts their changes"),
)

record_table = Table(
    "record",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("collection", CodePointText, nullable=False),
    Column("state", CodePointText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("name", CodePointText, nullable=False),
    Column("order_key", CodePointText, nullable=False),
    Column("name_key", CodePointText, nullable=False),
    Column("hit_length", Integer, nullable=False, comment="how much of body is the search hit; 0: none"),
    Column("body", LargeBinary, nullable=False, comment="the rendered record, as served"),
    Index("record_in_order", "collection", "state", "order_key", "id"),
    Index("record_by_name", "collection", "name_key"),
)
_add_partial_index(
    "record_hits", record_table.c.order_key, record_table.c.id, where="hit_length > 0 AND state = 'published'"
)

# No foreign keys: the records may not exist yet.
relation_table = Table(
    "relation",
    metadata,
    Column("source", CodePointText, primary_key=True),
    Column("relation", CodePointText, primary_key=True),
    Column("target", CodePointText, primary_key=True),
    Index("relation_by_target", "target", "relation"),
    sqlite_with_rowid=False,
)

# Further identifiers of records, as their statements have them: IRIs, and ids that redirect.
alternative_id_table = Table(
    "alternative_id",
    metadata,
    Column("name", CodePointText, primary_key=True),
    Column("record", CodePointText, primary_key=True),
    Index("alternative_id_of_record", "record"),
    sqlite_with_rowid=False,
)

# Names of records in other languages than the one that is shown by default.
label_table = Table(
    "label",
    metadata,
    Column("record", CodePointText, primary_key=True),
    Column("language", CodePointText, primary_key=True),
    Column("name", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Roles of accounts in single vocabularies, beside the one they have in all.
membership_table = Table(
    "membership",
    metadata,
    Column("account", CodePointText, ForeignKey("account.id"), primary_key=True),
    Column("vocabulary", CodePointText, primary_key=True),
    Column("role", CodePointText, nullable=False),
    sqlite_with_rowid=False,
)

change_table = Table(
    "change",
    metadata,
    Column("seq", BigInt, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", CodePointText, nullable=False),
    Column("batch", BigInteger, nullable=False, comment="the first seq of the write that made this change"),
    Column("action", CodePointText, nullable=False),
    Column("collection", CodePointText, nullable=False),
    Column("record", CodePointText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", CodePointText, nullable=False),
    Column("order_key", CodePointText, nullable=False),
    Column("name_key", CodePointText, nullable=False),
    Column("class_id", CodePointText, nullable=False),
    Column("owner", CodePointText, nullable=False),
    Column("flagged", Boolean, nullable=False),
    Column("document", LargeBinary, nullable=False, comment="the whole record from this change on"),
    Column("digest", LargeBinary, comment="of what the change says"),
    Index("change_of_record", "record", "version", unique=True),
    Index("change_in_order", "collection", "order_key", "record"),
    Index("change_by_name", "collection", "name_key", "record"),
    Index("change_by_class", "collection", "class_id", "name_key", "record"),
    Index("change_in_batch", "batch"),
)
_add_partial_index("change_of_person", change_table.c.actor, change_table.c.seq, where="actor <> 'usr_0000000000'")
_add_partial_index(
    "change_flagged", change_table.c.collection, change_table.c.name_key, change_table.c.record, where="flagged"
)

account_table = Table(
    "account",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("name", CodePointText, nullable=False, unique=True),
    Column("role", CodePointText, nullable=False),
    Column("password", Text, comment="argon2 hash"),
    Column("created", BigInteger, nullable=False),
    Column("notified", BigInteger, nullable=False, server_default="0", comment="until when it has seen notifications"),
    Index("account_by_role", "role"),
)

token_table = Table(
    "token",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("account", CodePointText, ForeignKey("account.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("role", CodePointText, nullable=False),
    Column("hash", CodePointText, nullable=False, unique=True),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("used", BigInteger),
    Column("revoked", BigInteger),
    Column("origin", CodePointText, nullable=False, server_default="unknown", comment="how it was made"),
    Column("parent", CodePointText, comment="the token that it was made with"),
    Index("token_by_parent", "parent"),
    Index("token_in_order", "created", "id"),
    Index("token_of_account", "account", "created", "id"),
)

proposal_table = Table(
    "proposal",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("collection", CodePointText, nullable=False),
    Column("record", CodePointText, comment="none: a new one is proposed"),
    Column("base_version", Integer),
    Column("change", LargeBinary, nullable=False, comment="the fields proposed, as JSON"),
    Column("author", CodePointText, ForeignKey("account.id"), nullable=False),
    Column("made", BigInteger, nullable=False),
    Column("state", CodePointText, nullable=False),
    Column("decider", CodePointText),
    Column("decided", BigInteger),
    Column("reason", Text, nullable=False),
    Column("summary", Text, nullable=False, server_default="", comment="what the author says about it"),
    Column("amended", Boolean, nullable=False, server_default=sa.false(), comment="accepted with other values"),
    Index("proposal_by_state", "state", "made", "id"),
    Index("proposal_by_state_of_author", "state", "author", "made", "id"),
    Index("proposal_of_author", "author", "made", "id"),
    Index("proposal_by_decision", "author", "decided", "id"),
)
_add_partial_index(
    "proposal_waits", proposal_table.c.record, proposal_table.c.made, proposal_table.c.id, where="state = 'open'"
)

# Only rows are added: the state of a thread follows from the last one that closes or reopens it.
comment_table = Table(
    "comment",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("record", CodePointText, nullable=False),
    Column("thread", CodePointText, nullable=False, comment="its first comment, which may be this one"),
    Column("author", CodePointText, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("action", CodePointText, nullable=False),
    Column("text", Text, nullable=False),
    Index("comment_of_record", "record", "at", "id"),
    Index("comment_in_thread", "thread", "at", "id"),
    Index("comment_of_author", "author", "at"),
)

release_table = Table(
    "release",
    metadata,
    Column("name", CodePointText, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
    Column("author", CodePointText, nullable=False),
    Column("made", BigInteger, nullable=False),
)

# Files of releases, each rendered once. No foreign keys: a vocabulary is purged table by table.
release_file_table = Table(
    "release_file",
    metadata,
    Column("release", CodePointText, primary_key=True),
    Column("format", CodePointText, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False, comment="of the file, in hexadecimal"),
    Column("made", BigInteger, nullable=False),
)

release_chunk_table = Table(
    "release_chunk",
    metadata,
    Column("release", CodePointText, primary_key=True),
    Column("format", CodePointText, primary_key=True),
    Column("number", Integer, primary_key=True, comment="from 0 on"),
    Column("content", LargeBinary, nullable=False, comment="part of the file, compressed by zlib"),
)

idempotency_table = Table(
    "idempotency",
    metadata,
    Column("account", CodePointText, primary_key=True),
    Column("key", CodePointText, primary_key=True),
    Column("request", CodePointText, nullable=False, comment="hash of method, path and body"),
    Column("answer", LargeBinary, nullable=False),
    Column("made", BigInteger, nullable=False),
    Index("idempotency_by_age", "made"),
)

webhook_table = Table(
    "webhook",
    metadata,
    Column("id", CodePointText, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("collections", Text, nullable=False, comment="with spaces between; empty: all"),
    Column("actions", Text, nullable=False, comment="with spaces between; empty: all"),
    Column("seq", BigInteger, nullable=False, comment="the last change delivered or passed over"),
    Column("created", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False, comment="how often the next change was tried in vain"),
    Column("due", BigInteger, nullable=False, comment="not to be tried before"),
    Column("failing", BigInteger, comment="since when nothing could be delivered"),
    Column("disabled", BigInteger),
)

delivery_table = Table(
    "delivery",
    metadata,
    Column("id", BigInt, primary_key=True),
    Column("webhook", CodePointText, ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("status", Integer, comment="none: there was no answer"),
    Column("error", Text, nullable=False),
    Index("delivery_of_webhook", "webhook", "id"),
)

lease_table = Table(
    "lease",
    metadata,
    Column("name", CodePointText, primary_key=True),
    Column("holder", CodePointText, nullable=False),
    Column("until", BigInteger, nullable=False),
)

# What a source last stated about a record, where the record itself does not show it.
import_statement_table = Table(
    "import_statement",
    metadata,
    Column("record", CodePointText, primary_key=True),
    Column("source", CodePointText, primary_key=True),
    Column("statements", LargeBinary, nullable=False, comment="as JSON"),
    sqlite_with_rowid=False,
)

# Writes that are imports though a person made them. Those of the system need no row.
import_write_table = Table(
    "import_write",
    metadata,
    Column("batch", BigInt, primary_key=True, autoincrement=False, comment="that of its changes"),
)

import_base_table = Table(
    "upstream",
    metadata,
    Column("record", CodePointText, primary_key=True),
    Column("untaken", LargeBinary, nullable=False, comment="as JSON: what imports told, field by field"),
)
