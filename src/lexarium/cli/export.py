"""`lexarium export`"""

from pathlib import Path, PurePath
from typing import Annotated

import typer

from lexarium.cli.support.options import (
    CollectionOption,
    DatabaseOption,
    apply_metadata_settings,
    choice_option,
    open_database,
    relax_gc,
)
from lexarium.cli.support.output import OutputOption, write_output
from lexarium.cli.support.terminal import progress_bar
from lexarium.compression import get_compressor, strip_compression_suffix
from lexarium.domain.errors import LexariumError
from lexarium.domain.vocabulary import get_default_vocabulary
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.transfer.export import export_records
from lexarium.services.vocabularies.head_records import get_vocabulary
from lexarium.settings import Settings

_DEFAULT_FORMAT = FORMATS["v-alpha"]
_NAMES = ", ".join(file_format.name for file_format in FORMATS.values() if file_format.can_write)
_FORMAT_HELP = f"One of {_NAMES}; else as FILE ends, else {_DEFAULT_FORMAT.name}."


def run(
    format: Annotated[Format | None, choice_option("--format", FORMATS, _NAMES, "FORMAT", _FORMAT_HELP)] = None,
    vocabulary: Annotated[
        str | None, typer.Option("--vocabulary", metavar="SLUG", help="Vocabulary to export, else the default one.")
    ] = None,
    collection: CollectionOption = None,
    output: OutputOption = None,
    release: Annotated[str | None, typer.Option(metavar="NAME", help="The catalogue as it was at a release.")] = None,
    as_of: Annotated[
        int | None, typer.Option(metavar="REVISION", min=0, help="The catalogue as it was at a revision.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Export a vocabulary: every collection, unless one is named.

    A FILE that ends in .gz, .bz2, .xz or .zst is compressed.
    """
    if release is not None and as_of is not None:
        raise LexariumError("Give --release or --as-of, not both.")
    file_format = format or _detect_format(output)
    store = open_database(database, must_exist=True)
    apply_metadata_settings(store, Settings.from_environment(database=database))
    chosen = get_default_vocabulary() if vocabulary is None else get_vocabulary(vocabulary)
    collections = chosen.collections if collection is None else [chosen.get_collection(collection.local_name)]
    relax_gc()
    with progress_bar() as bar:
        progress = None if output is None else bar
        chunks = export_records(
            store, chosen, file_format, collections, release=release, as_of=as_of, progress=progress
        )
        write_output(output, chunks)


def _detect_format(output: Path | None) -> Format:
    """Return the format that the name of a file asks for; raise where it is unknown or an archive."""
    if output is None:
        return _DEFAULT_FORMAT
    get_compressor(output.name)  # raises for archives
    suffix = PurePath(strip_compression_suffix(output.name)).suffix.lower()
    if not suffix:
        return _DEFAULT_FORMAT
    for file_format in FORMATS.values():
        if suffix in file_format.extensions:
            return file_format
    raise LexariumError(f"The name of {output} does not tell a format: give --format, one of {_NAMES}.")
