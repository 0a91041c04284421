"""`lexarium user`"""

import sys
from typing import Annotated

import typer

from lexarium.cli.options import DatabaseOption, opened
from lexarium.cli.terminal import err
from lexarium.domain.accounts import Role
from lexarium.service.access import add_account
from lexarium.service.passwords import set_password

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


@app.command()
def password(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")], database: DatabaseOption = None
) -> None:
    """Give an account a password to sign in with; asked for at a terminal, else read from standard input."""
    secret = (
        typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True) if sys.stdin.isatty() else input()
    )
    set_password(opened(database), name, secret)
    err.print(f"{name} has a new password.", markup=False)
