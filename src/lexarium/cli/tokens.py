"""`lexarium token`"""

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out
from lexarium.domain.accounts import Role, Token
from lexarium.domain.stamps import now, text_of
from lexarium.service.access import create_token, in_days, list_tokens, revoke_token
from lexarium.service.accounts import token_view

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def token() -> None:
    """Make, list and revoke the tokens that accounts write with."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account the token is for.")],
    role: Annotated[Role | None, typer.Option(help="A role no higher than the account's own.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="How long it is good for; else for good.")] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    database: DatabaseOption = None,
) -> None:
    """Make a token, and print it, alone, on standard output. It is shown this once."""
    made, secret = create_token(opened(database), name, role, in_days(days), label)
    err.print(f"The token {made.id} of {name} has the role {made.role}. It is shown only now:", markup=False)
    print(secret)


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List every token; the secrets are kept nowhere."""
    tokens = list_tokens(opened(database, reading=True))
    if json_output:
        print(json.dumps([token_view(each) for each in tokens]))
        return
    table = Table("id", "account", "label", "role", "created", "last used", "state", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for each in tokens:
        used = "never" if each.used is None else _moment(each.used)
        who = (each.id, Text(each.account.name), Text(each.label), each.role)
        table.add_row(*who, f"{_moment(each.created)} ({each.origin_text})", used, _state(each))
    out.print(table)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The identifier of the token.")],
    database: DatabaseOption = None,
) -> None:
    """Revoke a token, and all that were made with it."""
    revoke_token(opened(database), id)
    out.print(f"The token {id} is revoked, and so are all that were made with it.", markup=False)


def _state(token: Token) -> str:
    if token.revoked is not None:
        return f"revoked {_moment(token.revoked)}"
    if token.expires is None:
        return "good"
    return f"{'expired' if token.expires <= now() else 'good until'} {_moment(token.expires)}"


def _moment(milliseconds: int) -> str:
    """With a space in it, so that a narrow table can break it."""
    return text_of(milliseconds).replace("T", " ")
