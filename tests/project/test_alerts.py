"""Alerts of the documentation, checked by Prometheus' promtool."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.requirements import skip_or_fail

PAGE = (Path(__file__).parents[2] / "docs" / "operations" / "monitor.md").read_text()
RULES = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if block.startswith("groups:"))
SUMMARIES = dict(re.findall(r'- alert: (\w+)\n.*?summary: "(.*?)"', RULES, re.DOTALL))
NODE = 'instance="a",job="lexarium"'
LABELS = {"instance": "a", "job": "lexarium", "part": "v1", "reason": "http_500"}
MINUTES = 90


class AlertCase(NamedTuple):
    """Metric series that raise an alert and series that do not, in promtool's notation, by the minute."""

    firing_series: dict[str, str]
    quiet_series: dict[str, str]
    labels: tuple[str, ...] = ("instance", "job")


def format_fault_series(reason: str) -> str:
    return f'lexarium_server_errors_total{{{NODE},part="v1",reason="{reason}"}}'


def format_request_series(status: int) -> str:
    return f'lexarium_requests_total{{{NODE},method="GET",route="/",status="{status}"}}'


def format_latency_series(bound: str) -> str:
    return f'lexarium_request_seconds_bucket{{{NODE},route="/",le="{bound}"}}'


def format_gauge_series(name: str) -> str:
    return f"lexarium_{name}{{{NODE}}}"


ALERTS = {
    "LexariumDown": AlertCase({f"up{{{NODE}}}": "0x90"}, {f"up{{{NODE}}}": "1x90"}),
    "LexariumDatabaseSilent": AlertCase(
        {format_gauge_series("database_up"): "0x90"}, {format_gauge_series("database_up"): "1x90"}
    ),
    "LexariumFaults": AlertCase(
        {format_fault_series("http_500"): "0x88 1 1", format_fault_series("aborted"): "0x90"},  # the first one ever
        {format_fault_series("http_500"): "0x50 1x40", format_fault_series("aborted"): "0x90"},
        ("instance", "part", "reason"),
    ),
    "LexariumRefusing": AlertCase(
        {format_request_series(503): "0+60x90"},
        {format_request_series(503): "0+5x90", format_request_series(200): "0+60x90"},
        ("instance",),
    ),
    "LexariumSlow": AlertCase(
        {
            format_latency_series("2.5"): "0+60x90",
            format_latency_series("10.0"): "0+62x90",
            format_latency_series("+Inf"): "0+62x90",
        },
        {
            format_latency_series("2.5"): "0+62x90",
            format_latency_series("10.0"): "0+62x90",
            format_latency_series("+Inf"): "0+62x90",
        },
        ("instance",),
    ),
    "LexariumWritesWaiting": AlertCase(
        {format_gauge_series("writes_waiting"): "600x90"}, {format_gauge_series("writes_waiting"): "0x89 600"}
    ),
    "LexariumConnectionsUsed": AlertCase(
        {format_gauge_series("connections_used"): "60x90", format_gauge_series("connections_most"): "64x90"},
        {format_gauge_series("connections_used"): "30x90", format_gauge_series("connections_most"): "64x90"},
    ),
    "LexariumIndexBehind": AlertCase(
        {format_gauge_series("index_behind"): "-1x90"}, {format_gauge_series("index_behind"): "1000x90"}
    ),
    "LexariumWebhooksFailing": AlertCase(
        {format_gauge_series("webhooks_failing"): "1x90"}, {format_gauge_series("webhooks_failing"): "0x60 1x30"}
    ),
    "LexariumWebhookDisabled": AlertCase(
        {format_gauge_series("webhooks_disabled"): "1x80 2x10"}, {format_gauge_series("webhooks_disabled"): "1x90"}
    ),
    "LexariumWebhookBacklog": AlertCase(
        {format_gauge_series("webhook_backlog"): "1001x90"}, {format_gauge_series("webhook_backlog"): "0x80 2000x10"}
    ),
    "LexariumMemory": AlertCase(
        {format_gauge_series("memory_bytes"): "5e9x90", format_gauge_series("workers"): "2x90"},
        {format_gauge_series("memory_bytes"): "3e9x90", format_gauge_series("workers"): "2x90"},
    ),
}


def test_every_alert_has_a_test() -> None:
    assert set(ALERTS) == set(SUMMARIES)


@pytest.mark.full
def test_each_alert_fires_exactly_when_expected(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_or_fail("no promtool to try the alerts with (apt-get install prometheus)")
    (tmp_path / "rules.yml").write_text(RULES)
    tests = [build_promtool_test(name, *case) for name, alert_case in ALERTS.items() for case in list_cases(alert_case)]
    (tmp_path / "tests.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "tests": tests}))
    result = subprocess.run(
        [promtool, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def list_cases(alert_case: AlertCase) -> list[tuple[dict[str, str], list[dict[str, str]]]]:
    """Return series with the labels of the alerts they raise."""
    return [
        (alert_case.firing_series, [{label: LABELS[label] for label in alert_case.labels}]),
        (alert_case.quiet_series, []),
    ]


def build_promtool_test(
    name: str, input_series: dict[str, str], expected_labels: list[dict[str, str]]
) -> dict[str, object]:
    expected = [{"exp_labels": labels, "exp_annotations": {"summary": SUMMARIES[name]}} for labels in expected_labels]
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in input_series.items()],
        "alert_rule_test": [{"eval_time": f"{MINUTES}m", "alertname": name, "exp_alerts": expected}],
    }
