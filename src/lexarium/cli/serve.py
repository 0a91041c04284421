"""`lexarium serve`"""

import os
import socket
from typing import Annotated

import typer
import uvicorn
from uvicorn.supervisors import Multiprocess

from lexarium.cli.options import HELP, DatabaseOption
from lexarium.cli.terminal import err
from lexarium.domain.errors import LexariumError
from lexarium.service.sample import load_sample
from lexarium.settings import Settings
from lexarium.store.migrate import open_database
from lexarium.web.logs import logging_config
from lexarium.web.protocol import FinishedReplies

app = typer.Typer(add_completion=False)

_DRAIN_SECONDS = 10


@app.command()
def serve(
    database: DatabaseOption = None,
    host: Annotated[str | None, typer.Option(help=HELP["host"], show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help=HELP["port"], show_default="8000")] = None,
    workers: Annotated[int | None, typer.Option(help=HELP["workers"], show_default="1")] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Load the sample catalogue if there are no records.")
    ] = False,
) -> None:
    """Serve the catalogue over HTTP."""
    settings = Settings.read(os.environ, database=database, host=host, port=port, workers=workers)
    listener = _listen(settings.host, settings.port)
    store = open_database(settings.database)
    if sample:
        loaded = load_sample(store)
        err.print("The sample catalogue is loaded." if loaded else "The catalogue has records; no sample was loaded.")
    store.close()
    os.environ.update(settings.environment())
    config = uvicorn.Config(
        "lexarium.bootstrap:application",
        factory=True,
        workers=settings.workers,
        http=FinishedReplies,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        log_config=logging_config(settings.log, err.is_terminal),
    )
    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    err.print(f"Serving {store.place} on http://{address}:{listener.getsockname()[1]} (Ctrl-C stops)")
    if settings.workers > 1:
        Multiprocess(config, sockets=[listener]).run()
    else:
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Before anything else is done, so that a second server fails here.
        listener.listen(2048)
    except OSError as error:
        raise LexariumError(f"Cannot listen on {host} port {port}: {error.strerror or error}.") from None
    listener.set_inheritable(True)
    return listener
