"""Alembic's entry: runs the steps on the connection that `lexarium.store.migrate` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
