"""Read the metrics of a server."""

import re

from tests.support.server import Server

METRIC_LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+)')


def read_metrics(server: Server, **headers: str) -> dict[str, float]:
    """Read `/metrics` and return values by name and labels; check the format of each line."""
    response = server.get("/metrics", **headers)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    metrics = {}
    for line in response.body.decode().splitlines():
        if not line.startswith("# "):
            match = METRIC_LINE.fullmatch(line)
            assert match, line
            labels = re.sub(r'^(le="[^"]*"),(.*)', r"\2,\1", match[2] or "")  # labels have no order; here `le` is last
            metrics[f"{match[1]}{{{labels}}}" if labels else match[1]] = float(match[3])
    assert response.body.endswith(b"\n")
    return metrics
