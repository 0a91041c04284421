"""`lexarium mirror`"""

import json
from typing import Annotated

import typer

from lexarium.cli.importing import preference, refusal_told, tell
from lexarium.cli.options import DatabaseOption, JsonOption, opened
from lexarium.cli.terminal import err, out, progress_bar, say_lines
from lexarium.service.mirroring import RATE, Mirroring, Wish, mirror
from lexarium.service.reports import report_view

app = typer.Typer(add_completion=False)


@app.command("mirror")
def mirror_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other server is, as https://example.org.")],
    rate: Annotated[
        float, typer.Option("--rate", min=0.01, max=1_000, help="How many requests a second are sent at most.")
    ] = RATE,
    everything: Annotated[
        bool, typer.Option("--all", help="Ask for every record again, to see relations that have changed alone.")
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Retire what came from there and is gone there.")] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="Where both sides changed a field, take theirs.")] = False,
    ours: Annotated[bool, typer.Option("--ours", help="Where both sides changed a field, keep ours.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would change, and change nothing.")] = False,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Bring the catalogue up to what another server holds: any v-alpha server, or a Lexarium. All of it or nothing.

    Stopped in the middle, it goes on where it was; run again, it asks only for what has changed.
    """
    wish = Wish(rate, everything, prune, preference(theirs, ours), dry_run)
    store = opened(database)
    try:
        with refusal_told(json_output), progress_bar() as progress:
            made = mirror(store, url, wish, progress)
    except KeyboardInterrupt:
        err.print("What was fetched is kept: the same command goes on from there.")
        raise typer.Exit(130) from None
    if json_output:
        told = {"source": made.source, "requests": made.requests, "gone": made.gone, "pruned": made.pruned}
        print(json.dumps({**told, **report_view(made.report)}))
    else:
        _tell(made)


def _tell(made: Mirroring) -> None:
    tell(made.report)
    if len(made.gone) > made.pruned:
        left = len(made.gone) - made.pruned
        err.print(
            f"[yellow]{left:,} that came from there {'is' if left == 1 else 'are'} gone; --prune retires them:[/]"
        )
        say_lines(made.gone, len(made.gone), "yellow")
    out.print(f"{made.requests:,} {'request' if made.requests == 1 else 'requests'} to {made.source}", markup=False)
