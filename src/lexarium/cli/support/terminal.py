"""Output for people at a terminal, and for scripts elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lexarium.domain.errors import InvalidInput, LexariumError

# Problems or warnings that are printed one by one.
MAX_LINES = 20
# Scripts must find every line whole.
_NO_WRAP_WIDTH = 100_000

# Markup is off, because what is printed holds names of files and records.
out = Console(highlight=False, markup=False, soft_wrap=True, width=None if sys.stdout.isatty() else _NO_WRAP_WIDTH)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def print_error(error: LexariumError) -> None:
    """Print an error on standard error, with every problem on a line of its own."""
    err.print(Text.assemble(("Error:", "bold red"), f" {error}"))
    if isinstance(error, InvalidInput):
        print_list([f"{problem.field}: {problem.detail}" for problem in error.problems], "red")


def confirm(yes: bool, question: str) -> None:
    """Ask at a terminal unless `yes`; raise LexariumError if there is none, and exit if the answer is no."""
    if yes:
        return
    if not (sys.stdin.isatty() and err.is_terminal):
        raise LexariumError("Nothing was changed. Use --yes to confirm without a terminal.")
    typer.confirm(question, abort=True, err=True)


def print_list(lines: list[str], colour: str, count: int | None = None) -> None:
    """Print the first lines on standard error, and the number of others; `count` is the total if not all are given."""
    for line in lines[:MAX_LINES]:
        err.print(Text.assemble("  ", ("•", colour), f" {line}"))
    count = len(lines) if count is None else count
    if count > MAX_LINES:
        err.print(f"  … and {count - MAX_LINES:,} more")


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on standard error if it is a terminal; yield a function that updates it."""
    from rich.progress import (  # noqa: PLC0415 - takes long to load
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description:<8}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    tasks = {}

    def update_progress(step: str, done: int, total: int) -> None:
        if step not in tasks:
            tasks[step] = bar.add_task(step)
        bar.update(tasks[step], completed=done, total=total)

    with bar:
        yield update_progress


def print_table(table: Table) -> None:
    """Print a table; without trailing spaces if not on a terminal."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as capture:
        out.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip())
