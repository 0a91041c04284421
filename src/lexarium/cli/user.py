"""`lexarium user`"""

import json
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.terminal import err, out
from lexarium.domain.account import Role
from lexarium.services.access.accounts import (
    add_account,
    build_update_account_task,
    erase_account,
    get_account_by_name,
    list_accounts,
    serialize_account,
)
from lexarium.services.access.passwords import set_password

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
    account = add_account(open_database(database), name, role)
    err.print(
        f"{account.name} has the role {account.role} now. `lexarium token create` makes a token to write with.",
        markup=False,
    )
    print(account.id)


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List every account, by name."""
    accounts = list_accounts(open_database(database, must_exist=True))
    if json_output:
        print(json.dumps([serialize_account(account) for account in accounts]))
        return
    table = Table("id", "name", "role", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for account in accounts:
        table.add_row(
            account.id,
            Text("(erased)" if account.is_erased else account.name),
            "" if account.is_erased else account.role,
        )
    out.print(table)


@app.command()
def role(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")],
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="contributor, curator or admin.")],
    database: DatabaseOption = None,
) -> None:
    """Give an account another role; its tokens may do no more than that, from now on."""
    store = open_database(database)
    store.run_write(build_update_account_task(get_account_by_name(store, name).id, role))
    out.print(f"{name} has the role {role} now.", markup=False)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")], database: DatabaseOption = None
) -> None:
    """Erase an account: its name, its password and its tokens. The log goes on naming its identifier."""
    store = open_database(database)
    account = get_account_by_name(store, name)
    erase_account(store, account.id)
    out.print(f"{name} is erased; what they did stays under {account.id}.", markup=False)


@app.command()
def password(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")], database: DatabaseOption = None
) -> None:
    """Give an account a password to sign in with; asked for at a terminal, else read from standard input."""
    secret = (
        typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True) if sys.stdin.isatty() else input()
    )
    set_password(open_database(database), name, secret)
    err.print(f"{name} has a new password.", markup=False)
