"""Digest of every change, so that a check notices when the log was altered."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from lexarium.domain.change import DIGEST_BYTES, compute_digest

revision = "0010"
down_revision = "0009"

HEADER = "seq, at, actor, batch, action, collection, record, version"


def upgrade() -> None:
    """Add the column, and compute the digests in the database, so that no row has to be fetched."""
    op.add_column("change", sa.Column("digest", sa.LargeBinary, comment="of what the change says"))
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.create_function("compute_digest", 9, lambda *row: compute_digest(row[:8], row[8]), deterministic=True)
        connection.execute(sa.text(f"UPDATE change SET digest = compute_digest({HEADER}, document)"))  # noqa: S608 (our own)
    else:
        # Rewrites the table and its indexes once; an update would leave every row there twice.
        header = f"convert_to(concat_ws(chr(10), {HEADER}, ''), 'UTF8')"
        digest = f"substr(sha256({header} || document), 1, {DIGEST_BYTES})"
        connection.execute(sa.text(f"ALTER TABLE change ALTER COLUMN digest TYPE bytea USING {digest}"))
