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
NODE_STATE_VARIABLE = "LEXARIUM_MARK"
METRICS_DIR_VARIABLE = "LEXARIUM_FIGURES"
# Settings that become metadata of the main vocabulary once, with their names there.
METADATA_SETTINGS = {
    "title": "title",
    "licence": "licence",
    "publisher": "publisher",
    "language": "languages",
    "base": "base",
}
# Variables of workers, tests and benchmarks that are not settings.
_OTHER_PREFIXES = (NODE_STATE_VARIABLE, METRICS_DIR_VARIABLE, "LEXARIUM_REAL_CATALOGUE", "LEXARIUM_TEST_")


def _text(default: str, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


def _integer(default: int, range: tuple[int, int], help: str) -> Any:
    return field(default=default, metadata={"help": help, "range": range})


@dataclass(frozen=True)
class Settings:
    """Settings of an installation."""

    database: str = _text(
        "sqlite:///lexarium.db", "Where the catalogue is: sqlite:///FILE, or postgresql://USER@HOST/NAME"
    )
    database_read: str = _text(
        "", "Where reads may go too: the hot standbys of a PostgreSQL database, as one address; empty: nowhere else"
    )
    database_seconds: int = _integer(
        10,
        (1, 3_600),
        "How many seconds the server waits for a connection to PostgreSQL, for its turn to write, for a statement",
    )
    integrity_minutes: int = _integer(
        60,
        (0, 100_000),
        "How many minutes lie between two quick checks of the database in the background, the first after the start;"
        " 0: none",
    )
    index: str = _text(
        "auto",
        "The folder of the search index; auto: FILE-search beside an SQLite file, else lexarium-search-EPOCH here",
    )
    host: str = _text("127.0.0.1", "The address the server listens on, or unix:PATH for a socket in the file system")
    port: int = _integer(8000, (0, 65_535), "The port the server listens on; 0 takes a free one")
    workers: int = _integer(1, (1, 256), "How many processes serve")
    cache_mb: int = _integer(
        32,
        (0, 1_000_000),
        "How many megabytes of finished answers a worker keeps; what does not fit is streamed from the database",
    )
    body_kb: int = _integer(1024, (1, 1_000_000), "The largest body of a request, in kibibytes; batches may be larger")
    body_seconds: int = _integer(
        60,
        (1, 86_400),
        "How many seconds the headers of a request may take, and its body, and each further mebibyte of a batch",
    )
    batch_lines: int = _integer(50_000, (1, 10_000_000), "The most lines of a batch")
    batch_mb: int = _integer(64, (1, 10_000), "The largest batch, in mebibytes")
    upload_mb: int = _integer(256, (1, 10_000), "The largest upload of files to be imported on a page, in mebibytes")
    bodies_mb: int = _integer(
        256,
        (1, 1_000_000),
        "How many mebibytes of bodies each worker process holds, of all requests together; one that sends more is"
        " told to come again (503)",
    )
    name_limit: int = _integer(500, (1, 10_000), "The longest name that people may write, in characters")
    alias_limit: int = _integer(2_000, (1, 1_000_000), "The longest alias that people may write, in characters")
    definition_limit: int = _integer(
        50_000, (1, 10_000_000), "The longest definition that people may write, in characters"
    )
    write_rate: int = _integer(100, (1, 1_000_000), "How many writes a second a token may send to each worker process")
    write_burst: int = _integer(200, (1, 1_000_000), "How many writes a token may send at once to each worker process")
    sign_in_rate: int = _integer(
        5,
        (1, 1_000_000),
        "How many times a minute one address may try the password of an account at each worker process",
    )
    proposals: int = _integer(
        1_000, (0, 1_000_000), "How many open proposals a contributor may have; one more is refused (403)"
    )
    proposals_kb: int = _integer(
        16_384, (0, 1_000_000), "How many kibibytes the open proposals of a contributor may hold together"
    )
    streams: int = _integer(
        1_000, (0, 1_000_000), "How many live streams of changes each worker process serves at once"
    )
    requests: int = _integer(
        64,
        (1, 1_000_000),
        "How many requests each worker process has in work at once; one more is told to come again (503), and for a"
        " second after that everyone past an eighth of them",
    )
    connections: int = _integer(
        10_000,
        (1, 1_000_000),
        "How many connections each worker process has open at once; further ones are refused (503)",
    )
    heavy_requests: int = _integer(
        64,
        (1, 1_000_000),
        "How many heavy requests (annotate, export, reconcile) each worker process has in work at once, beside the"
        " others; further ones are refused (503)",
    )
    heavy_at_once: int = _integer(
        2, (1, 1_000), "How many heavy requests each worker process works on at the same time; others wait"
    )
    heavy_seconds: int = _integer(
        30, (1, 3_600), "How many seconds a heavy request waits for its turn before it is refused (503)"
    )
    title: str = _text(
        "Lexarium", "Title of a new main vocabulary; once it has one, lexarium vocabulary set changes it"
    )
    licence: str = _text("", "Likewise its licence: an IRI or a short text")
    publisher: str = _text("", "Likewise its publisher")
    language: str = _text("en", "Likewise the language of its names and definitions, as a BCP 47 tag")
    base: str = _text(DEFAULT_BASE, "Likewise the start of the IRIs of its records, which end in id/ID")
    trusted_proxies: str = _text(
        "",
        "Which proxies tell the client's address and scheme (X-Forwarded-For, X-Forwarded-Proto): addresses and"
        " networks, with commas; who comes by a Unix socket is always trusted",
    )
    read: str = _text(
        "open", "Who may read: open (everyone) or token (only who has a token: a closed catalogue)", ("open", "token")
    )
    log: str = _text(
        "auto", "How the server logs: text, json, or auto (text on a terminal, else json)", ("auto", "text", "json")
    )
    log_requests: str = _text(
        "no",
        "Whether the log has a line for every request: yes or no; faults of the server have one always",
        ("yes", "no"),
    )
    webhooks_private: str = _text(
        "no", "Whether webhooks may be sent to private and loopback addresses: yes or no", ("yes", "no")
    )

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
            raise SettingError(f"{_format_name('trusted_proxies')} must name addresses or networks: {error}.") from None

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
                f"{_format_name('bodies_mb')} must be at least {math.ceil(largest_mb)}, so that one body of the largest"
                " size (batch_mb, body_kb) can be held."
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
            messages.append(f"{name} is no setting{f'; did you mean {PREFIX}{nearest[0]}?' if nearest else '.'}")
    if messages:
        raise SettingError(" ".join(messages))


def _parse_value(setting: "Field[Any]", text: str) -> str | int:
    if isinstance(setting.default, str):
        return text
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{variable_name(setting)} must be a whole number, not {text!r}.") from None
