"""Run the `lexarium` command with `python -m lexarium`."""

from lexarium.cli.main import run

if __name__ == "__main__":
    run()
