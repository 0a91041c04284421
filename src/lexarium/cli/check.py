"""`lexarium check`"""

import json
from dataclasses import asdict

import typer

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out, print_list
from lexarium.domain.text.numbers import format_count
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.maintenance.index_check import check_index
from lexarium.services.search.indexer import index_folder
from lexarium.settings import Settings

_REPAIR_HINT = (
    "Keep the database as it is, and put the last good backup into a new one: `lexarium restore`. "
    'docs/deploying.md, "When something is broken", has the steps.'
)


def run(json_output: JsonOption = False, database: DatabaseOption = None) -> None:
    """Check that the catalogue agrees with itself: records, relations, log, index. Exit code 1 where it does not."""
    store = open_database(database, must_exist=True)
    report = check_database(store)
    is_broken = bool(report.problems)
    is_damage_cleared = not is_broken and store.backend.find_damage() is not None
    if is_damage_cleared:
        store.clear_damage()
    if not is_broken:  # An index cannot be compared with a broken database.
        index_report = check_index(store, index_folder(store, Settings.from_environment().index))
        report.problems += index_report.problems
        report.remarks += index_report.remarks
    if json_output:
        print(json.dumps(asdict(report)))
    else:
        if report.remarks:
            err.print("Worth knowing:", style="yellow")
            print_list(report.remarks, "yellow")
        if report.problems:
            err.print(f"{format_count(len(report.problems), 'problem')}:", style="bold red")
            print_list(report.problems, "red")
            if is_broken:  # Problems of the index alone include what to do.
                err.print(_REPAIR_HINT)
        else:
            out.print(f"{report.records:,} records and {report.changes:,} changes agree.")
        if is_damage_cleared:
            out.print("The database is no longer marked as damaged: servers read and write it again.")
    if report.problems:
        raise typer.Exit(1)
