"""`lexarium`: the table of commands."""

import sys
import tempfile
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from lexarium import __version__
from lexarium.cli.file_permissions import make_files_private
from lexarium.cli.terminal import err, print_error
from lexarium.domain.errors import LexariumError

COMMANDS = {
    "serve": "lexarium.cli.serve",
    "import": "lexarium.cli.import_command",
    "export": "lexarium.cli.export",
    "mirror": "lexarium.cli.mirror",
    "search": "lexarium.cli.search",
    "show": "lexarium.cli.show",
    "annotate": "lexarium.cli.annotate",
    "user": "lexarium.cli.user",
    "token": "lexarium.cli.token",
    "migrate": "lexarium.cli.migrate",
    "check": "lexarium.cli.check",
    "copy": "lexarium.cli.copy",
    "backup": "lexarium.cli.backup",
    "restore": "lexarium.cli.restore",
    "reindex": "lexarium.cli.reindex",
}

_INTERRUPTED_EXIT_CODE = 130


class LazyGroup(TyperGroup):
    """Loads a command's module when the command is asked for, so that starting stays fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = get_command(import_module(COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _print_version(value: bool) -> None:
    if value:
        print(f"lexarium {__version__}")
        raise typer.Exit


@app.callback()
def lexarium(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A terminology catalogue service: serve, find, curate and share a vocabulary."""


def run() -> None:
    """Run the command line. A mistake gets one sentence and exit code 1; wrong usage, 2."""
    make_files_private()
    try:
        app()
    except LexariumError as error:
        print_error(error)
        sys.exit(1)
    except SystemExit as exit_error:
        # What Typer makes of Ctrl-C.
        if exit_error.code == _INTERRUPTED_EXIT_CODE:
            err.print("Stopped; the catalogue is as it was.")
        raise
    except Exception as error:
        sys.exit(_report_crash(error))


def _report_crash(error: Exception) -> int:
    """Say that the mistake is ours, and where its details are; nobody should read a stack trace unasked."""
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has had enough of it. Nothing more can be said there, nor at exit.
        sys.stdout = None
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="lexarium-", suffix=".log", delete=False) as file:
        traceback.print_exception(error, file=file)
    err.print(f"[bold red]Error:[/] Lexarium made a mistake ({type(error).__name__}). Its details are in {file.name}")
    return 1
