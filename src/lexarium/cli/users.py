"""`lexarium user`"""

import json
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out
from lexarium.domain.accounts import Role
from lexarium.service.access import add_account, list_accounts
from lexarium.service.accounts import account_view, change, erase, named
from lexarium.service.passwords import set_password

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def user() -> None:
    """Keep the accounts of people who write."""


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


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List every account, by name."""
    found = list_accounts(opened(database, reading=True))
    if json_output:
        print(json.dumps([account_view(each) for each in found]))
        return
    table = Table("id", "name", "role", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for each in found:
        table.add_row(each.id, Text("(erased)" if each.erased else each.name), "" if each.erased else each.role)
    out.print(table)


@app.command()
def role(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")],
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="contributor, curator or admin.")],
    database: DatabaseOption = None,
) -> None:
    """Give an account another role; its tokens may do no more than that, from now on."""
    store = opened(database)
    store.run(change(named(store, name).id, role))
    out.print(f"{name} has the role {role} now.", markup=False)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")], database: DatabaseOption = None
) -> None:
    """Erase an account: its name, its password and its tokens. The log goes on naming its identifier."""
    store = opened(database)
    account = named(store, name)
    erase(store, account.id)
    out.print(f"{name} is erased; what they did stays under {account.id}.", markup=False)


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
