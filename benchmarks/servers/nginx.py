"""nginx with the responses as static files: the upper limit."""

import os
import pwd
from pathlib import Path

from benchmarks.data.catalogue import BenchmarkCatalogue
from benchmarks.data.records import to_json
from benchmarks.harness.http_client import HOST
from benchmarks.harness.server_process import ServerSpec, find_free_port
from benchmarks.harness.tools import Tools

_CONFIGURATION = """\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    etag on;
    default_type application/json;
    keepalive_requests 1000000000;
    client_body_temp_path temp;
    proxy_temp_path temp;
    fastcgi_temp_path temp;
    uwsgi_temp_path temp;
    scgi_temp_path temp;
    server {{
        listen {host}:{port};
        root files;
    }}
}}
"""


def prepare_nginx(catalogue: BenchmarkCatalogue, folder: Path, tools: Tools) -> ServerSpec:
    """Write the whole collection and one record as files."""
    files = folder / "files"
    files.mkdir()
    (files / "collection").write_bytes(to_json(catalogue.concepts))
    # The bytes that a service returns for one record without relations.
    (files / "record").write_bytes(to_json({**catalogue.sample_record, "type": "concept", "relationships": []}))
    port = find_free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(user=_format_user_directive(), host=HOST, port=port))
    return ServerSpec(
        name="nginx",
        command=(tools.nginx, "-p", str(folder), "-c", str(configuration), "-e", "stderr"),
        port=port,
        collection_path="/collection",
        record_path="/record",
        folder=folder,
    )


def _format_user_directive() -> str:
    """Return a directive that keeps nginx as root: its usual user could not read the files."""
    return f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
