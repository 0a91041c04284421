"""`lexarium`: the table of commands. A module has a function `run`, or an `app` of subcommands."""

import gc
import os
import sys
import tempfile
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_command

from lexarium import __version__
from lexarium.cli.support.file_permissions import make_files_private
from lexarium.cli.support.terminal import err, print_error
from lexarium.domain.errors import LexariumError

_NAMES = (
    *("serve", "import", "export", "mirror", "search", "show", "annotate", "user", "token"),
    *("vocabulary", "schema", "migrate", "check", "copy", "backup", "restore", "reindex"),
)
# Modules by command, in the order of the help; `import` is a keyword.
COMMANDS = {name: f"lexarium.cli.{'import_command' if name == 'import' else name}" for name in _NAMES}
_INTERRUPTED_EXIT_CODE = 130
# Collect garbage seldom: modules that are loaded stay, and commands that stream records form no reference cycles.
_GC_THRESHOLD = 100_000


class LazyGroup(TyperGroup):
    """Load the module of a command when it is used, so that starting stays fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        command_app = getattr(module, "app", None)
        if command_app is None:
            command_app = typer.Typer(add_completion=False)
            command_app.command()(module.run)
        command = get_command(command_app)
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Serve, search, curate and publish a terminology catalogue."""


def run() -> None:
    """Run the command line. Exit with 1 after an error, with 2 after wrong usage."""
    make_files_private()
    gc.set_threshold(_GC_THRESHOLD)
    # None are used, and pydantic would look for them in the metadata of all installed packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        app()
    except LexariumError as error:
        print_error(error)
        sys.exit(1)
    except SystemExit as exit_error:
        # Typer turns Ctrl-C into this.
        if exit_error.code == _INTERRUPTED_EXIT_CODE:
            err.print("Interrupted. The catalogue was not changed.")
        raise
    except Exception as error:
        sys.exit(_report_crash(error))


def _report_crash(error: Exception) -> int:
    """Write the traceback of an internal error to a file, and print where it is; return the exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader of the output has closed it: nothing more can be written, nor flushed at exit.
        sys.stdout = None
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="lexarium-", suffix=".log", delete=False) as file:
        traceback.print_exception(error, file=file)
    message = f" Internal error ({type(error).__name__}). Details: {file.name}"
    err.print(Text.assemble(("Error:", "bold red"), message))
    return 1
