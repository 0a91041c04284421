"""Keys of long names, cut to what an index of every engine can hold."""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

LONGEST = 2_000
TABLES = {"record": "id", "change": "seq"}


def upgrade() -> None:
    """Cut the keys that are too long."""
    connection = op.get_bind()
    for name, identity in TABLES.items():
        table = sa.table(name, sa.column(identity), sa.column("order_key"), sa.column("name_key"))
        for key in (table.c.order_key, table.c.name_key):
            # In characters, as both engines count: no fewer can have so many bytes.
            long = sa.select(table.c[identity], key).where(sa.func.length(key) > LONGEST // 4)
            for this, value in connection.execute(long).all():
                this_row = sa.update(table).where(table.c[identity] == this)
                connection.execute(this_row.values({key.name: bounded(value)}))


def bounded(key: str) -> str:
    """As much of a key as fits beside a digest of all of it, where it does not fit itself."""
    whole = key.encode()
    if len(whole) <= LONGEST:
        return key
    digest = hashlib.sha256(whole).hexdigest()
    return whole[: LONGEST - len(digest)].decode(errors="ignore") + digest
