"""Keys of long names, shortened to what an index of every engine can hold."""

import sqlalchemy as sa
from alembic import op

from lexarium.domain.text.characters import MAX_KEY_BYTES, truncate_key

revision = "0004"
down_revision = "0003"

ID_COLUMNS = {"record": "id", "change": "seq"}


def upgrade() -> None:
    connection = op.get_bind()
    for table_name, id_column in ID_COLUMNS.items():
        table = sa.table(table_name, sa.column(id_column), sa.column("order_key"), sa.column("name_key"))
        row_id = table.c[id_column]
        for key in (table.c.order_key, table.c.name_key):
            # Both engines count characters. A key with fewer cannot have too many bytes.
            long_keys = sa.select(row_id, key).where(sa.func.length(key) > MAX_KEY_BYTES // 4)
            for value, text in connection.execute(long_keys).all():
                update = sa.update(table).where(row_id == value)
                connection.execute(update.values({key.name: truncate_key(text)}))
