"""A digest of every change, so that a check tells whether what the log says was altered."""

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

DIGEST_BYTES = 16
TOLD = "seq, at, actor, batch, action, collection, record, version"


def upgrade() -> None:
    """Add the column, and make the digests where the rows are: not one of them has to be fetched."""
    comment = "of what the change says"
    op.add_column("change", sa.Column("digest", sa.LargeBinary, comment=comment))
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        driver = connection.connection.driver_connection
        driver.create_function("digest_of", 9, digest_of, deterministic=True)  # type: ignore[union-attr]
        connection.execute(sa.text(f"UPDATE change SET digest = digest_of({TOLD}, document)"))  # noqa: S608 (our own)
    else:
        # The table is written anew, once, with its indexes: an update would leave every row there twice.
        told = f"convert_to(concat_ws(chr(10), {TOLD}, ''), 'UTF8')"
        digest = f"substr(sha256({told} || document), 1, {DIGEST_BYTES})"
        connection.execute(sa.text(f"ALTER TABLE change ALTER COLUMN digest TYPE bytea USING {digest}"))


def digest_of(*given: Any) -> bytes:
    """What the parts of a change, the document last, come to."""
    *told, document = given
    return hashlib.sha256("".join(f"{each}\n" for each in told).encode() + document).digest()[:DIGEST_BYTES]
