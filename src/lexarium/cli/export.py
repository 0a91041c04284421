"""`lexarium export`"""

from pathlib import Path, PurePath
from typing import Annotated

import typer
from rich.text import Text

from lexarium.cli.support.options import (
    CollectionOption,
    DatabaseOption,
    apply_metadata_settings,
    choice_option,
    open_database,
)
from lexarium.cli.support.output import OutputOption, write_output
from lexarium.cli.support.terminal import err, progress_bar
from lexarium.compression import get_compressor, strip_compression_suffix
from lexarium.domain.errors import LexariumError
from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.vocabulary import Vocabulary, get_default_vocabulary
from lexarium.formats.parsed import WarningCounter
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records.releases import get_release
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.release_files import export_release
from lexarium.services.vocabularies.head_records import get_vocabulary
from lexarium.settings import Settings

_NAMES = ", ".join(file_format.name for file_format in FORMATS.values() if file_format.can_write)
_FORMAT_HELP = (
    f"One of {_NAMES}. Default: by file extension, else v-alpha for the main vocabulary and linkml for others."
)


def run(
    format: Annotated[Format | None, choice_option("--format", FORMATS, _NAMES, "FORMAT", _FORMAT_HELP)] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option("--vocabulary", metavar="SLUG", help="Vocabulary to export (default: the default vocabulary)."),
    ] = None,
    collection: CollectionOption = None,
    output: OutputOption = None,
    release: Annotated[str | None, typer.Option(metavar="NAME", help="Export a release.")] = None,
    as_of: Annotated[int | None, typer.Option(metavar="REVISION", min=0, help="Export a past revision.")] = None,
    database: DatabaseOption = None,
) -> None:
    """Export a vocabulary, or one of its collections.

    The output is compressed if the file name ends in .gz, .bz2, .xz or .zst.
    """
    if release is not None and as_of is not None:
        raise LexariumError("Use --release or --as-of, not both.")
    store = open_database(database, must_exist=True)
    apply_metadata_settings(store, Settings.from_environment(database=database))
    chosen = get_default_vocabulary() if vocabulary is None else get_vocabulary(vocabulary)
    file_format = format or _detect_format(output, chosen)
    collections = chosen.collections if collection is None else [chosen.get_collection(collection)]
    losses = WarningCounter()
    with progress_bar() as bar:
        progress = None if output is None else bar
        if release is not None and collection is None:
            named = store.run_read(get_release, release, chosen.slug)
            chunks = export_release(store, named, file_format, progress)
        else:
            chunks = export_records(
                store, chosen, file_format, collections, release=release, as_of=as_of, progress=progress, losses=losses
            )
        write_output(output, chunks)
    for message in losses:
        err.print(Text.assemble(("•", "yellow"), f" {losses.format_message(message)}"))


def _detect_format(output: Path | None, vocabulary: Vocabulary) -> Format:
    """Return the format for a file name; raise LexariumError if it is unknown or an archive.

    JSON of other vocabularies than the main one follows their schema, as in imports: v-alpha has few of their values.
    """
    default = FORMATS["v-alpha" if vocabulary.slug == MAIN_VOCABULARY else "linkml"]
    if output is None:
        return default
    get_compressor(output.name)  # raises for archives
    name = PurePath(strip_compression_suffix(output.name)).name.lower()
    if not PurePath(name).suffix:
        return default
    # `x.sssom.tsv` is SSSOM, though it is TSV too.
    fitting = [
        (len(extension), file_format)
        for file_format in (default, *FORMATS.values())
        for extension in file_format.extensions
        if name.endswith(extension)
    ]
    if fitting:
        return max(fitting, key=lambda item: item[0])[1]
    raise LexariumError(f"Cannot detect the format of {output}; use --format with one of {_NAMES}.")
