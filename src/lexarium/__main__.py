"""`python -m lexarium` is the `lexarium` command."""

from lexarium.cli.main import run

if __name__ == "__main__":
    run()
