"""Files of releases, rendered once and kept."""

from alembic import op

from lexarium.store.schema import release_chunk_table, release_file_table

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the tables. Files are rendered when they are first requested."""
    for table in (release_file_table, release_chunk_table):
        table.create(op.get_bind())
