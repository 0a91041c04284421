"""Settings: one table, read once from options and LEXARIUM_* variables; options take precedence."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Self, TypeAlias

from lexarium.domain.errors import SettingError
from lexarium.domain.vocabulary import DEFAULT_BASE

Network: TypeAlias = IPv4Network | IPv6Network

PREFIX = "LEXARIUM_"
# Set for worker processes: the file with the state of their node, and the folder of their metrics.
NODE_STATE_VARIABLE = "LEXARIUM_NODE_STATE"
METRICS_DIR_VARIABLE = "LEXARIUM_METRICS_DIR"
# Settings that become metadata of the main vocabulary once, with their names there.
METADATA_SETTINGS = {
    "title": "title",
    "licence": "licence",
    "publisher": "publisher",
    "language": "languages",
    "base": "base",
}
# Variables of workers, tests and benchmarks that are not settings.
_OTHER_PREFIXES = (NODE_STATE_VARIABLE, METRICS_DIR_VARIABLE, "LEXARIUM_REAL_", "LEXARIUM_TEST_")


def _text(default: str, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


def _integer(default: int, range: tuple[int, int], help: str) -> Any:
    return field(default=default, metadata={"help": help, "range": range})


@dataclass(frozen=True)
class Settings:
    """Settings of an installation."""

    database: str = _text("sqlite:///lexarium.db", "Database URL: sqlite:///FILE or postgresql://USER@HOST/NAME")
    database_read: str = _text("", "URL of PostgreSQL hot standbys used for reads (default: none)")
    database_seconds: int = _integer(
        10,
        (1, 3_600),
        "PostgreSQL timeout in seconds: connect, wait to write, run a statement",
    )
    integrity_minutes: int = _integer(
        60,
        (0, 100_000),
        "Minutes between quick background checks of the database, the first at startup; 0 disables them",
    )
    index: str = _text(
        "auto",
        "Search index folder; auto: FILE-search next to the SQLite file, else ./lexarium-search-EPOCH",
    )
    host: str = _text("127.0.0.1", "Listen address, or unix:PATH for a Unix socket")
    port: int = _integer(8000, (0, 65_535), "Listen port; 0 picks a free port")
    workers: int = _integer(1, (1, 256), "Number of worker processes")
    cache_mb: int = _integer(
        32,
        (0, 1_000_000),
        "Response cache per worker, in MB; larger responses are streamed",
    )
    body_kb: int = _integer(1024, (1, 1_000_000), "Maximum request body, in KiB (batches may be larger)")
    body_seconds: int = _integer(
        60,
        (1, 86_400),
        "Timeout in seconds for request headers, for the body, and per further MiB of a batch",
    )
    batch_lines: int = _integer(50_000, (1, 10_000_000), "Maximum lines per batch")
    batch_mb: int = _integer(64, (1, 10_000), "Maximum batch size, in MiB")
    upload_mb: int = _integer(256, (1, 10_000), "Maximum file upload for a browser import, in MiB")
    bodies_mb: int = _integer(
        256,
        (1, 1_000_000),
        "Memory for request bodies per worker, in MiB; beyond it requests get 503",
    )
    name_limit: int = _integer(500, (1, 10_000), "Maximum name length in edits, in characters")
    alias_limit: int = _integer(2_000, (1, 1_000_000), "Maximum length of all aliases joined, in edits, in characters")
    definition_limit: int = _integer(50_000, (1, 10_000_000), "Maximum definition length in edits, in characters")
    write_rate: int = _integer(100, (1, 1_000_000), "Write rate limit per token and worker, per second")
    write_burst: int = _integer(200, (1, 1_000_000), "Write burst limit per token and worker")
    comment_rate: int = _integer(20, (1, 1_000_000), "Comments per minute, per account and worker; beyond it 429")
    sign_in_rate: int = _integer(
        5,
        (1, 1_000_000),
        "Sign-in attempts per minute, per client address, account and worker",
    )
    proposals: int = _integer(1_000, (0, 1_000_000), "Maximum open proposals per contributor; beyond it 403")
    proposals_kb: int = _integer(
        16_384, (0, 1_000_000), "Maximum total size of the open proposals of a contributor, in KiB"
    )
    streams: int = _integer(1_000, (0, 1_000_000), "Maximum live change streams per worker")
    requests: int = _integer(
        64,
        (1, 1_000_000),
        "Maximum concurrent requests per worker; beyond it 503, and for the next second only one eighth is admitted",
    )
    connections: int = _integer(
        10_000,
        (1, 1_000_000),
        "Maximum open connections per worker; beyond it 503",
    )
    heavy_requests: int = _integer(
        64,
        (1, 1_000_000),
        "Maximum admitted heavy requests (annotate, export, reconcile) per worker, in addition to other requests;"
        " beyond it 503",
    )
    heavy_at_once: int = _integer(
        2, (1, 1_000), "Maximum heavy requests processed at the same time per worker; others wait"
    )
    heavy_seconds: int = _integer(30, (1, 3_600), "Maximum seconds a heavy request waits to be processed; then 503")
    annotate_mb: int = _integer(
        32,
        (10, 1_000_000),
        "Maximum text that one client can have annotated at the same time per worker, in MiB; beyond it 429",
    )
    title: str = _text("Lexarium", "Title of a new main vocabulary; change it later with lexarium vocabulary set")
    licence: str = _text("", "Licence of a new main vocabulary: an IRI or a short text")
    publisher: str = _text("", "Publisher of a new main vocabulary")
    language: str = _text("en", "Language of a new main vocabulary, as a BCP 47 tag")
    base: str = _text(DEFAULT_BASE, "Base IRI of a new main vocabulary; record IRIs are BASE + id/ID")
    trusted_proxies: str = _text(
        "",
        "Trusted proxies (X-Forwarded-For, X-Forwarded-Proto): addresses and networks, comma-separated; Unix"
        " sockets are always trusted",
    )
    read: str = _text("open", "Read access: open (everyone) or token (token or sign-in required)", ("open", "token"))
    log: str = _text("auto", "Log format: text, json or auto (text on a terminal, else json)", ("auto", "text", "json"))
    log_requests: str = _text(
        "no",
        "Log every request: yes or no (HTTP 500 is always logged)",
        ("yes", "no"),
    )
    webhooks_private: str = _text("no", "Allow webhooks to private and loopback addresses: yes or no", ("yes", "no"))

    @property
    def allows_private_webhooks(self) -> bool:
        """Return whether webhooks may be sent to private and loopback addresses."""
        return self.webhooks_private == "yes"

    @property
    def metadata_values(self) -> dict[str, Any]:
        """Return the metadata of the main vocabulary that were set."""
        values = {key: getattr(self, name) for name, key in METADATA_SETTINGS.items()}
        defaults = {key: getattr(Settings, name) for name, key in METADATA_SETTINGS.items()}
        return {
            key: [value] if key == "languages" else value for key, value in values.items() if value != defaults[key]
        }

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        """Return the networks of trusted proxies; raise `SettingError`."""
        networks = [network.strip() for network in self.trusted_proxies.split(",") if network.strip()]
        try:
            return tuple(ip_network(network, strict=False) for network in networks)
        except ValueError as error:
            raise SettingError(f"{_format_name('trusted_proxies')} must list addresses or networks: {error}.") from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, **options: object) -> Self:
        """Return the settings from options (None: not given), else from the environment, else the defaults.

        Raise `SettingError` also for unknown variables: a typo could leave open what should be private.
        """
        _reject_unknown(environment)
        values: dict[str, Any] = {name: option for name, option in options.items() if option is not None}
        for setting in fields(cls):
            text = environment.get(variable_name(setting))
            if text and setting.name not in values:
                values[setting.name] = _parse_value(setting, text)
        settings = cls(**values)
        settings._validate()
        return settings

    def to_environment(self) -> dict[str, str]:
        """Return the settings as variables, for a child process."""
        return {variable_name(setting): str(getattr(self, setting.name)) for setting in fields(self)}

    def _validate(self) -> None:
        _ = self.proxy_networks
        for setting in fields(self):
            value, label = getattr(self, setting.name), _format_name(setting.name)
            minimum, maximum = setting.metadata.get("range", (value, value))
            if not minimum <= value <= maximum:
                raise SettingError(f"{label} must be from {minimum} to {maximum}, not {value}.")
            choices = setting.metadata.get("choices")
            if choices and value not in choices:
                raise SettingError(f"{label} must be one of {', '.join(choices)}.")
        largest_mb = max(self.batch_mb, self.body_kb / 1024)
        if self.bodies_mb < largest_mb:
            raise SettingError(
                f"{_format_name('bodies_mb')} must be at least {math.ceil(largest_mb)}, to hold one request body"
                " of the maximum size (batch_mb, body_kb)."
            )


def variable_name(setting: "Field[Any]") -> str:
    """Return the name of the variable that a setting is read from."""
    return format_variable(setting.name)


def format_variable(name: str) -> str:
    """Return the name of the variable of a setting, given its name."""
    return PREFIX + name.upper()


def _format_name(name: str) -> str:
    return f"The setting {name} ({format_variable(name)})"


def _reject_unknown(names: Iterable[str]) -> None:
    known_names = [setting.name.upper() for setting in fields(Settings)]
    messages = []
    for name in sorted(names):
        short_name = name.removeprefix(PREFIX)  # With the prefix, all names would look alike.
        if name.startswith(PREFIX) and short_name not in known_names and not name.startswith(_OTHER_PREFIXES):
            nearest = get_close_matches(short_name, known_names, 1)
            messages.append(f"Unknown setting {name}{f'; did you mean {PREFIX}{nearest[0]}?' if nearest else '.'}")
    if messages:
        raise SettingError(" ".join(messages))


def _parse_value(setting: "Field[Any]", text: str) -> str | int:
    if isinstance(setting.default, str):
        return text
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{variable_name(setting)} must be a whole number, not {text!r}.") from None
