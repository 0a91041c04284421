"""Alembic environment: run migrations on the connection of `lexarium.store.maintenance.upgrade`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
