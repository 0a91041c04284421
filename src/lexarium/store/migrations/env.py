"""Alembic environment: run migrations on the connection of `lexarium.store.upgrade`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
