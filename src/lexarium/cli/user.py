"""`lexarium user`"""

import json
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out, print_table
from lexarium.domain.account import Role
from lexarium.services.access import accounts
from lexarium.services.access.passwords import set_password
from lexarium.services.vocabularies.head_records import get_vocabulary

app = typer.Typer(add_completion=False, no_args_is_help=True)
AccountArgument = Annotated[str, typer.Argument(metavar="NAME", help="The account.")]


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
    account = accounts.add_account(open_database(database), name, role)
    err.print(f"{account.name} has the role {account.role} now. `lexarium token create` makes a token to write with.")
    print(account.id)


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List every account, by name."""
    listed = accounts.list_accounts(open_database(database, must_exist=True))
    if json_output:
        entries = [{**accounts.serialize_account(item), "vocabularies": item.vocabulary_roles} for item in listed]
        print(json.dumps(entries))
        return
    table = Table("id", "name", "role", "in vocabularies", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for account in listed:
        name, role = ("(erased)", "") if account.is_erased else (account.name, account.role)
        table.add_row(account.id, Text(name), role, ", ".join(map(": ".join, account.vocabulary_roles.items())))
    print_table(table)


@app.command()
def role(
    name: AccountArgument,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help=f"{', '.join(Role)}.")],
    vocabulary: Annotated[
        str | None,
        typer.Option(metavar="SLUG", help="Only in this vocabulary, beside the role in all; none takes it away."),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Give an account another role; its tokens may do no more than that, from now on."""
    store = open_database(database)
    account_id = accounts.get_account_by_name(store, name).id
    if vocabulary is None:
        store.run_write(lambda transaction: accounts.update_account(transaction, account_id, role))
        out.print(f"{name} has the role {role} now.")
        return
    slug = get_vocabulary(vocabulary).slug
    store.run_write(lambda transaction: accounts.set_vocabulary_role(transaction, account_id, slug, role))
    out.print(f"{name} has {'no role of its own' if role is Role.NONE else f'the role {role}'} in {slug} now.")


@app.command()
def remove(name: AccountArgument, database: DatabaseOption = None) -> None:
    """Erase an account: its name, its password and its tokens. The log goes on naming its identifier."""
    store = open_database(database)
    account = accounts.get_account_by_name(store, name)
    accounts.erase_account(store, account.id)
    out.print(f"{name} is erased; what they did stays under {account.id}.")


@app.command()
def password(name: AccountArgument, database: DatabaseOption = None) -> None:
    """Give an account a password to sign in with; asked for at a terminal, else read from standard input."""
    if sys.stdin.isatty():
        secret = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        secret = input()
    set_password(open_database(database), name, secret)
    err.print(f"{name} has a new password.")
