"""`lexarium token`"""

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out
from lexarium.domain.account import Role, Token
from lexarium.domain.text.timestamps import format_timestamp, now_ms
from lexarium.services.access.tokens import compute_expiry, create_token, list_tokens, revoke_token, serialize_token

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def token() -> None:
    """Manage API tokens."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Account of the token.")],
    role: Annotated[Role | None, typer.Option(help="Role of the token, at most that of the account.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="Days until it expires (default: never).")] = None,
    label: Annotated[str, typer.Option(help="Label.")] = "",
    database: DatabaseOption = None,
) -> None:
    """Create a token and print it. It is shown only once."""
    token, secret = create_token(open_database(database), name, role, compute_expiry(days), label)
    err.print(f"Created token {token.id} of {name} with role {token.role}. It is shown only once:")
    print(secret)


@app.command("list")
def list_command(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """List all tokens (without secrets)."""
    tokens = list_tokens(open_database(database, must_exist=True))
    if json_output:
        print(json.dumps([serialize_token(token) for token in tokens]))
        return
    table = Table("id", "account", "label", "role", "created", "last used", "state", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for token in tokens:
        created = f"{_format_timestamp(token.created_at)} ({token.origin_text})"
        last_used = "never" if token.last_used_at is None else _format_timestamp(token.last_used_at)
        names = (Text(token.account.name), Text(token.label))
        table.add_row(token.id, *names, token.role, created, last_used, _format_state(token))
    out.print(table)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="ID of the token.")],
    database: DatabaseOption = None,
) -> None:
    """Revoke a token and all tokens created with it."""
    revoke_token(open_database(database), id)
    out.print(f"Revoked token {id} and all tokens created with it.")


def _format_state(token: Token) -> str:
    if token.revoked_at is not None:
        return f"revoked {_format_timestamp(token.revoked_at)}"
    if token.expires_at is None:
        return "active"
    return f"{'expired' if token.expires_at <= now_ms() else 'expires'} {_format_timestamp(token.expires_at)}"


def _format_timestamp(milliseconds: int) -> str:
    # With a space, so that a narrow table can break it.
    return format_timestamp(milliseconds).replace("T", " ")
