"""`lexarium user`"""

from typing import Annotated

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import err
from lexarium.domain.accounts import Role
from lexarium.service.access import add_account

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def user() -> None:
    """Make accounts for people who write."""


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the account is called.")],
    role: Annotated[Role, typer.Option(help="What the account may do.")],
    database: DatabaseOption = None,
) -> None:
    """Make an account, and print its identifier."""
    account = add_account(opened(database), name, role)
    err.print(
        f"{account.name} has the role {account.role} now. `lexarium token create` makes a token to write with.",
        markup=False,
    )
    print(account.id)
