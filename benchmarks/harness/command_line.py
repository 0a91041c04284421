"""Command line of a benchmark that writes a page in `docs`."""

from argparse import ArgumentParser
from pathlib import Path

from benchmarks.harness.report import TARGET_RECORDS

ROOT = Path(__file__).parents[2]


def create_parser(name: str, description: str, page: str) -> ArgumentParser:
    """Return a parser with the option for the page; `name` is the module."""
    parser = ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "docs" / "benchmarks" / page,
        help=f"Markdown page (docs/benchmarks/{page})",
    )
    return parser


def add_records_option(parser: ArgumentParser) -> None:
    """Add the option for the size of the generated catalogue."""
    help_text = f"number of generated records ({TARGET_RECORDS:,})"
    parser.add_argument("--records", type=int, default=TARGET_RECORDS, help=help_text)
