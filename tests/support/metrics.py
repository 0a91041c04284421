"""Read the metrics of a server."""

import re

from tests.support.server import Server

METRIC_LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+)')


def read_metrics(server: Server, **headers: str) -> dict[str, float]:
    """What `/metrics` tells, each line held to the form."""
    response = server.get("/metrics", **headers)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    metrics = {}
    for line in response.body.decode().splitlines():
        if not line.startswith("# "):
            match = METRIC_LINE.fullmatch(line)
            assert match, line
            metrics[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
    assert response.body.endswith(b"\n")
    return metrics
