"""Imports that people have made."""

from alembic import op

from lexarium.store.schema import import_write_table

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the table. Until now the system was the actor of all imports."""
    import_write_table.create(op.get_bind())
