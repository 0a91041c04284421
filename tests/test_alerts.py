"""The alerts of the documents, as Prometheus itself understands them: what raises each, and what does not."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.lacking import skip

PAGE = (Path(__file__).parents[1] / "docs" / "watching.md").read_text()
RULES = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if block.startswith("groups:"))
SUMMARIES = dict(re.findall(r'- alert: (\w+)\n.*?summary: "(.*?)"', RULES, re.DOTALL))
NODE = 'instance="a",job="lexarium"'
LABELS = {"instance": "a", "job": "lexarium", "part": "v1", "reason": "answer"}
MINUTES = 90


class Tried(NamedTuple):
    """Figures of a node, minute by minute, as promtool writes them, in two cases."""

    raised: dict[str, str]
    quiet: dict[str, str]
    labels: tuple[str, ...] = ("instance", "job")
    """Those of the alert."""


def fault(reason: str) -> str:
    return f'lexarium_faults_total{{{NODE},part="v1",reason="{reason}"}}'


def asked(status: int) -> str:
    return f'lexarium_requests_total{{{NODE},method="GET",route="/",status="{status}"}}'


def within(bound: str) -> str:
    return f'lexarium_request_seconds_bucket{{{NODE},route="/",le="{bound}"}}'


def gauge(name: str) -> str:
    return f"lexarium_{name}{{{NODE}}}"


ALERTS = {
    "LexariumDown": Tried({f"up{{{NODE}}}": "0x90"}, {f"up{{{NODE}}}": "1x90"}),
    "LexariumDatabaseSilent": Tried({gauge("database_up"): "0x90"}, {gauge("database_up"): "1x90"}),
    "LexariumFaults": Tried(
        {fault("answer"): "0x88 1 1", fault("broken off"): "0x90"},  # the first ever
        {fault("answer"): "0x50 1x40", fault("broken off"): "0x90"},
        ("instance", "part", "reason"),
    ),
    "LexariumRefusing": Tried({asked(503): "0+60x90"}, {asked(503): "0+5x90", asked(200): "0+60x90"}, ("instance",)),
    "LexariumSlow": Tried(
        {within("2.5"): "0+60x90", within("10.0"): "0+62x90", within("+Inf"): "0+62x90"},
        {within("2.5"): "0+62x90", within("10.0"): "0+62x90", within("+Inf"): "0+62x90"},
        ("instance",),
    ),
    "LexariumWritesWaiting": Tried({gauge("writes_waiting"): "600x90"}, {gauge("writes_waiting"): "0x89 600"}),
    "LexariumConnectionsUsed": Tried(
        {gauge("connections_used"): "60x90", gauge("connections_most"): "64x90"},
        {gauge("connections_used"): "30x90", gauge("connections_most"): "64x90"},
    ),
    "LexariumIndexBehind": Tried({gauge("index_behind"): "-1x90"}, {gauge("index_behind"): "1000x90"}),
    "LexariumWebhooksFailing": Tried({gauge("webhooks_failing"): "1x90"}, {gauge("webhooks_failing"): "0x60 1x30"}),
    "LexariumWebhookDisabled": Tried({gauge("webhooks_disabled"): "1x80 2x10"}, {gauge("webhooks_disabled"): "1x90"}),
    "LexariumWebhookBacklog": Tried({gauge("webhook_backlog"): "1001x90"}, {gauge("webhook_backlog"): "0x80 2000x10"}),
    "LexariumMemory": Tried(
        {gauge("memory_bytes"): "5e9x90", gauge("workers"): "2x90"},
        {gauge("memory_bytes"): "3e9x90", gauge("workers"): "2x90"},
    ),
}


def test_every_alert_is_tried() -> None:
    assert set(ALERTS) == set(SUMMARIES)


def test_each_alert_is_raised_when_it_should_be_and_only_then(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip("no promtool to try the alerts with (apt-get install prometheus)")
    (tmp_path / "rules.yml").write_text(RULES)
    tests = [case(name, *each) for name, tried in ALERTS.items() for each in cases(tried)]
    (tmp_path / "tests.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "tests": tests}))
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def cases(tried: Tried) -> list[tuple[dict[str, str], list[dict[str, str]]]]:
    """Figures, and the labels of every alert that they raise."""
    return [(tried.raised, [{label: LABELS[label] for label in tried.labels}]), (tried.quiet, [])]


def case(name: str, figures: dict[str, str], raised: list[dict[str, str]]) -> dict[str, object]:
    expected = [{"exp_labels": labels, "exp_annotations": {"summary": SUMMARIES[name]}} for labels in raised]
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in figures.items()],
        "alert_rule_test": [{"eval_time": f"{MINUTES}m", "alertname": name, "exp_alerts": expected}],
    }
