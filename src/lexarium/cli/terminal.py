"""Speaking to people at a terminal, and to scripts elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from lexarium.domain.errors import InvalidInput, LexariumError

MAX_LINES = 20
"""How many problems or warnings are shown one by one."""

_NO_WRAP_WIDTH = 100_000
"""The width of what is no terminal: a script must find every line whole."""

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _NO_WRAP_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_error(error: LexariumError) -> None:
    """Say on standard error what is wrong, every problem on a line of its own."""
    err.print(f"[bold red]Error:[/] {escape(str(error))}")
    if isinstance(error, InvalidInput):
        lines = [f"{problem.field}: {problem.detail}" for problem in error.problems]
        print_list(lines, len(lines), "red")


def print_list(lines: list[str], count: int, colour: str) -> None:
    """Say the first of these on standard error, and how many more there are of all `count`."""
    for line in lines[:MAX_LINES]:
        err.print(f"  [{colour}]•[/] {escape(line)}")
    if count > MAX_LINES:
        err.print(f"  … and {count - MAX_LINES:,} more")


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal's standard error; a call says what is done, how far, of how much. Elsewhere: nothing."""
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
    """Print a table; elsewhere than on a terminal without the blanks that would fill its last column."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as capture:
        out.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip())
