"""`lexarium mirror`"""

import json
from typing import Annotated

import typer

from lexarium.cli.import_command import parse_preference, print_rejection, print_report
from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out, print_list, progress_bar
from lexarium.domain.text.numbers import format_count
from lexarium.services.transfer.import_report import serialize_report
from lexarium.services.transfer.mirror import DEFAULT_RATE, MirrorOptions, mirror


def run(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other server is, as https://example.org.")],
    rate: Annotated[
        float, typer.Option("--rate", min=0.01, max=1_000, help="How many requests a second are sent at most.")
    ] = DEFAULT_RATE,
    refetch_all: Annotated[
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
    mirror_options = MirrorOptions(rate, refetch_all, prune, parse_preference(theirs, ours), dry_run)
    store = open_database(database)
    try:
        with print_rejection(json_output), progress_bar() as progress:
            result = mirror(store, url, mirror_options, progress)
    except KeyboardInterrupt:
        err.print("What was fetched is kept: the same command goes on from there.")
        raise typer.Exit(130) from None
    if json_output:
        summary = {"source": result.source, "requests": result.requests, "gone": result.missing}
        print(json.dumps({**summary, "pruned": result.pruned, **serialize_report(result.report)}))
        return
    print_report(result.report)
    remaining = len(result.missing) - result.pruned
    if remaining > 0:
        verb = "is" if remaining == 1 else "are"
        err.print(f"{remaining:,} that came from there {verb} gone; --prune retires them:", style="yellow")
        print_list(result.missing, "yellow")
    out.print(f"{format_count(result.requests, 'request')} to {result.source}")
