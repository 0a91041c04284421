"""`lexarium check`"""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from lexarium.cli.support.options import DatabaseOption, JsonOption, open_database
from lexarium.cli.support.terminal import err, out, print_list
from lexarium.domain.text.numbers import format_count
from lexarium.services.maintenance.database_check import CheckReport, check_database
from lexarium.services.maintenance.index_check import check_index
from lexarium.services.search.indexer import index_folder
from lexarium.services.vocabularies.conformance import ConformanceReport, check_conformance
from lexarium.services.vocabularies.head_records import get_vocabulary, list_vocabularies
from lexarium.settings import Settings

_REPAIR_HINT = (
    "Do not change the database. Restore the last good backup into a new one with `lexarium restore`. "
    'See "Restore a broken database" in docs/operations/recover.md.'
)


_VocabularyOption = Annotated[
    str | None,
    typer.Option(
        "--vocabulary", metavar="SLUG", help="Also check a vocabulary for nonconforming records.", show_default=False
    ),
]


def run(json_output: JsonOption = False, vocabulary: _VocabularyOption = None, database: DatabaseOption = None) -> None:
    """Check consistency of records, relations, change log and search index. Exits with 1 on problems.

    With --vocabulary, also list nonconforming names, hierarchy, references, values and translations of a vocabulary.
    These do not change the exit code.
    """
    store = open_database(database, must_exist=True)
    checked = None if vocabulary is None else get_vocabulary(vocabulary)
    report = check_database(store)
    is_broken = bool(report.problems)
    is_damage_cleared = not is_broken and store.backend.find_damage() is not None
    if is_damage_cleared:
        store.clear_damage()
    if not is_broken:  # An index cannot be compared with a broken database.
        index_report = check_index(store, index_folder(store, Settings.from_environment().index))
        report.problems += index_report.problems
        report.remarks += index_report.remarks
    conformance = None
    if checked is not None and not is_broken:
        with store.read() as snapshot:
            conformance = check_conformance(snapshot, checked, [item.slug for item in list_vocabularies()])
    if json_output:
        content = asdict(report)
        print(json.dumps(content if conformance is None else {**content, "conformance": asdict(conformance)}))
    else:
        _print_report(report, is_broken=is_broken, is_damage_cleared=is_damage_cleared)
        if conformance is not None:
            _print_conformance(conformance)
    if report.problems:
        raise typer.Exit(1)


def _print_conformance(report: ConformanceReport) -> None:
    checked = f"{format_count(report.records, 'record')} of {report.vocabulary}"
    out.print(f"{checked}: {format_count(report.total, 'finding') if report.total else 'all conform'}.")
    for group in report.groups.values():
        if group.total:
            out.print(f"{group.title}: {group.total:,}", style="yellow")
            print_list([f"{item.id} {item.name}: {item.detail}" for item in group.examples], "yellow")


def _print_report(report: CheckReport, *, is_broken: bool, is_damage_cleared: bool) -> None:
    if report.remarks:
        err.print("Warnings:", style="yellow")
        print_list(report.remarks, "yellow")
    if report.problems:
        err.print(f"{format_count(len(report.problems), 'problem')}:", style="bold red")
        print_list(report.problems, "red")
        if is_broken:  # Problems of the index alone include what to do.
            err.print(_REPAIR_HINT)
    else:
        out.print(f"{report.records:,} records and {report.changes:,} changes checked; no problems found.")
    if is_damage_cleared:
        out.print("The database is no longer marked as damaged. Servers can read and write it again.")
