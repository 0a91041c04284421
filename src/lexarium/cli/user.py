"""`lexarium user`"""

import json
import sys
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, YesOption, open_database
from lexarium.cli.support.terminal import confirm, err, out, print_table
from lexarium.domain.account import Role
from lexarium.services.access import accounts
from lexarium.services.access.passwords import set_password
from lexarium.services.vocabularies.head_records import get_vocabulary

app = typer.Typer(add_completion=False, no_args_is_help=True)
AccountArgument = Annotated[str, typer.Argument(metavar="NAME", help="Account name.")]


@app.callback()
def user() -> None:
    """Manage accounts."""


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Account name.")],
    role: Annotated[Role, typer.Option(help="Role of the account.")],
    database: DatabaseOption = None,
) -> None:
    """Create an account and print its ID."""
    account = accounts.add_account(open_database(database), name, role)
    err.print(f"{account.name} was created with role {account.role}. Create a token with `lexarium token create`.")
    print(account.id)


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List all accounts by name."""
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
        typer.Option(
            metavar="SLUG", help="Role in this vocabulary only, in addition to the general role; none removes it."
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Change the role of an account. Its tokens are limited to that role."""
    store = open_database(database)
    account_id = accounts.get_account_by_name(store, name).id
    if vocabulary is None:
        store.run_write(lambda transaction: accounts.update_account(transaction, account_id, role))
        out.print(f"{name} now has the role {role}.")
        return
    slug = get_vocabulary(vocabulary).slug
    store.run_write(lambda transaction: accounts.set_vocabulary_role(transaction, account_id, slug, role))
    out.print(f"{name} now has {'no role of its own' if role is Role.NONE else f'the role {role}'} in {slug}.")


@app.command()
def remove(name: AccountArgument, yes: YesOption = False, database: DatabaseOption = None) -> None:
    """Erase an account: its name, password and tokens. The change log keeps its ID."""
    store = open_database(database)
    account = accounts.get_account_by_name(store, name)
    confirm(yes, f"Erase {name}, with password and tokens? This cannot be undone.")
    accounts.erase_account(store, account.id)
    out.print(f"{name} was erased; its changes remain under {account.id}.")


@app.command()
def password(name: AccountArgument, database: DatabaseOption = None) -> None:
    """Set a password. Prompts on a terminal, else reads standard input."""
    if sys.stdin.isatty():
        secret = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        secret = input()
    set_password(open_database(database), name, secret)
    err.print(f"Password of {name} changed.")
