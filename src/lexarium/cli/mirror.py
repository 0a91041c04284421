"""`lexarium mirror`"""

import json
from typing import Annotated

import typer

from lexarium.cli.import_command import parse_preference, print_rejection, print_report
from lexarium.cli.support.index_update import update_index
from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out, print_list, progress_bar
from lexarium.domain.text.numbers import format_count
from lexarium.services.transfer.import_report import serialize_report
from lexarium.services.transfer.mirror import DEFAULT_RATE, MirrorOptions, mirror


def run(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the other server, such as https://example.org.")],
    rate: Annotated[
        float, typer.Option("--rate", min=0.01, max=1_000, help="Maximum requests per second.")
    ] = DEFAULT_RATE,
    refetch_all: Annotated[
        bool, typer.Option("--all", help="Fetch every record again, to detect changes in relations only.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Retire records that no longer exist on the other server.")
    ] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="On conflict, use the value of the other server.")] = False,
    ours: Annotated[
        bool, typer.Option("--ours", help="On conflict, keep the local value and do not report it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without changing anything.")
    ] = False,
    json_output: JsonOption = False,
    database: DatabaseOption = None,
) -> None:
    """Mirror a v-alpha or Lexarium server into this catalogue. All or nothing.

    Resumes after an interruption. Later runs fetch only changes.
    """
    mirror_options = MirrorOptions(rate, refetch_all, prune, parse_preference(theirs, ours), dry_run)
    store = open_database(database)
    try:
        with print_rejection(json_output), progress_bar() as progress:
            result = mirror(store, url, mirror_options, progress)
    except KeyboardInterrupt:
        err.print("Downloaded data is kept. Run the same command to resume.")
        raise typer.Exit(130) from None
    if result.report.has_changes and not dry_run:
        update_index(store)
    if json_output:
        summary = {"source": result.source, "requests": result.requests, "gone": result.missing}
        print(json.dumps({**summary, "pruned": result.pruned, **serialize_report(result.report)}))
        return
    print_report(result.report)
    remaining = len(result.missing) - result.pruned
    if remaining > 0:
        gone = f"{format_count(remaining, 'mirrored record')} no longer on the other server"
        err.print(f"{gone}; --prune retires them:", style="yellow")
        print_list(result.missing, "yellow")
    out.print(f"{format_count(result.requests, 'request')} to {result.source}")
