"""`lexarium reindex`"""

from lexarium.cli.support.options import DatabaseOption, open_database
from lexarium.cli.support.terminal import out, progress_bar
from lexarium.services.search.indexer import Indexer
from lexarium.settings import Settings


def run(database: DatabaseOption = None) -> None:
    """Rebuild the search index. Servers use the old index until it is done."""
    indexer = Indexer(open_database(database, must_exist=True), Settings.from_environment().index)
    with progress_bar() as progress:
        records = indexer.rebuild(progress)
    indexer.stop()
    out.print(f"Indexed {records:,} records.")
