"""The settings: one table. Read once, from options and from LEXARIUM_* variables; an option goes first."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Self, TypeAlias

from lexarium.domain.errors import SettingError
from lexarium.domain.vocabulary import Vocabulary

Network: TypeAlias = IPv4Network | IPv6Network

PREFIX = "LEXARIUM_"

SHARED_POSITION_VARIABLE = "LEXARIUM_MARK"
"""The variable that names the file by which the workers of a node tell each other where it stands."""

METRICS_DIR_VARIABLE = "LEXARIUM_FIGURES"
"""The variable that names the folder in which they tell each other their figures."""

_OTHER_PREFIXES = (SHARED_POSITION_VARIABLE, METRICS_DIR_VARIABLE, "LEXARIUM_REAL_CATALOGUE", "LEXARIUM_TEST_")
"""What else variables of ours begin with: those of workers, tests and benchmarks."""

_RANGES = {
    "database_seconds": (1, 3_600),
    "integrity_minutes": (0, 100_000),
    "port": (0, 65_535),
    "workers": (1, 256),
    "cache_mb": (0, 1_000_000),
    "body_kb": (1, 1_000_000),
    "body_seconds": (1, 86_400),
    "batch_lines": (1, 10_000_000),
    "batch_mb": (1, 10_000),
    "upload_mb": (1, 10_000),
    "bodies_mb": (1, 1_000_000),
    "name_limit": (1, 10_000),
    "alias_limit": (1, 1_000_000),
    "definition_limit": (1, 10_000_000),
    "write_rate": (1, 1_000_000),
    "write_burst": (1, 1_000_000),
    "sign_in_rate": (1, 1_000_000),
    "proposals": (0, 1_000_000),
    "proposals_kb": (0, 1_000_000),
    "streams": (0, 1_000_000),
    "requests": (1, 1_000_000),
    "connections": (1, 1_000_000),
    "heavy_requests": (1, 1_000_000),
    "heavy_at_once": (1, 1_000),
    "heavy_seconds": (1, 3_600),
}


def _setting(default: str | int, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class Settings:
    """What an operator may choose."""

    database: str = _setting(
        "sqlite:///lexarium.db", "Where the catalogue is: sqlite:///FILE, or postgresql://USER@HOST/NAME"
    )
    database_read: str = _setting(
        "", "Where reads may go too: the hot standbys of a PostgreSQL database, as one address; empty: nowhere else"
    )
    database_seconds: int = _setting(
        10, "How many seconds the server waits for a connection to PostgreSQL, for its turn to write, for a statement"
    )
    integrity_minutes: int = _setting(
        60,
        "How many minutes lie between two quick checks of the database in the background, the first after the start;"
        " 0: none",
    )
    index: str = _setting(
        "auto",
        "The folder of the search index; auto: FILE-search beside an SQLite file, else lexarium-search-EPOCH here",
    )
    host: str = _setting("127.0.0.1", "The address the server listens on, or unix:PATH for a socket in the file system")
    port: int = _setting(8000, "The port the server listens on; 0 takes a free one")
    workers: int = _setting(1, "How many processes serve")
    cache_mb: int = _setting(
        32, "How many megabytes of finished answers a worker keeps; what does not fit is streamed from the database"
    )
    body_kb: int = _setting(1024, "The largest body of a request, in kibibytes; batches may be larger")
    body_seconds: int = _setting(
        60, "How many seconds the headers of a request may take, and its body, and each further mebibyte of a batch"
    )
    batch_lines: int = _setting(50_000, "The most lines of a batch")
    batch_mb: int = _setting(64, "The largest batch, in mebibytes")
    upload_mb: int = _setting(256, "The largest upload of files to be imported on a page, in mebibytes")
    bodies_mb: int = _setting(
        256,
        "How many mebibytes of bodies each worker process holds, of all requests together; one that sends more is told"
        " to come again (503)",
    )
    name_limit: int = _setting(500, "The longest name that people may write, in characters")
    alias_limit: int = _setting(2_000, "The longest alias that people may write, in characters")
    definition_limit: int = _setting(50_000, "The longest definition that people may write, in characters")
    write_rate: int = _setting(100, "How many writes a second a token may send to each worker process")
    write_burst: int = _setting(200, "How many writes a token may send at once to each worker process")
    sign_in_rate: int = _setting(
        5, "How many times a minute one address may try the password of an account at each worker process"
    )
    proposals: int = _setting(1_000, "How many open proposals a contributor may have; one more is refused (403)")
    proposals_kb: int = _setting(16_384, "How many kibibytes the open proposals of a contributor may hold together")
    streams: int = _setting(1_000, "How many live streams of changes each worker process serves at once")
    requests: int = _setting(
        64,
        "How many requests each worker process has in work at once; one more is told to come again (503), and for a"
        " second after that everyone past an eighth of them",
    )
    connections: int = _setting(
        10_000, "How many connections each worker process has open at once; further ones are refused (503)"
    )
    heavy_requests: int = _setting(
        64,
        "How many heavy requests (annotate, export, reconcile) each worker process has in work at once, beside the"
        " others; further ones are refused (503)",
    )
    heavy_at_once: int = _setting(
        2, "How many heavy requests each worker process works on at the same time; others wait"
    )
    heavy_seconds: int = _setting(30, "How many seconds a heavy request waits for its turn before it is refused (503)")
    title: str = _setting("Lexarium", "What the catalogue is called")
    licence: str = _setting("", "Under which terms it may be used: an IRI or a short text")
    publisher: str = _setting("", "Who publishes it")
    language: str = _setting("en", "The language of its names and definitions, as a BCP 47 tag")
    base: str = _setting(
        "http://localhost:8000/", "What the IRIs of its records begin with: where it is served; they end in id/ID"
    )
    trusted_proxies: str = _setting(
        "",
        "Which proxies tell the client's address and scheme (X-Forwarded-For, X-Forwarded-Proto): addresses and"
        " networks, with commas; who comes by a Unix socket is always trusted",
    )
    read: str = _setting(
        "open", "Who may read: open (everyone) or token (only who has a token: a closed catalogue)", ("open", "token")
    )
    log: str = _setting(
        "auto", "How the server logs: text, json, or auto (text on a terminal, else json)", ("auto", "text", "json")
    )
    log_requests: str = _setting(
        "no",
        "Whether the log has a line for every request: yes or no; faults of the server have one always",
        ("yes", "no"),
    )
    webhooks_private: str = _setting(
        "no", "Whether webhooks may be sent to private and loopback addresses: yes or no", ("yes", "no")
    )

    @property
    def vocabulary(self) -> Vocabulary:
        """What the catalogue says of itself."""
        base = self.base if self.base.endswith(("/", "#")) else f"{self.base}/"
        return Vocabulary(self.title, self.licence, self.publisher, self.language, base)

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        """The proxies that are trusted."""
        networks = [network.strip() for network in self.trusted_proxies.split(",") if network.strip()]
        try:
            return tuple(ip_network(network, strict=False) for network in networks)
        except ValueError as error:
            raise SettingError(f"{_format_name('trusted_proxies')} must name addresses or networks: {error}.") from None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **options: object) -> Self:
        """The settings from options (None: not given), else from the environment, else by default.

        A variable that only looks like a setting is refused: mistyped, it would leave open what should be closed.
        """
        _reject_unknown(environment)
        values: dict[str, Any] = {}
        for setting in fields(cls):
            option = options.get(setting.name)
            if option is not None:
                values[setting.name] = option
            elif environment.get(variable_name(setting)):
                values[setting.name] = _parse_value(setting, environment[variable_name(setting)])
        settings = cls(**values)
        settings._validate()
        return settings

    def to_environment(self) -> dict[str, str]:
        """The settings as variables, for a process that shall have the same."""
        return {variable_name(setting): str(getattr(self, setting.name)) for setting in fields(self)}

    def _validate(self) -> None:
        _ = self.proxy_networks
        for name, (minimum, maximum) in _RANGES.items():
            if not minimum <= getattr(self, name) <= maximum:
                raise SettingError(
                    f"{_format_name(name)} must be from {minimum} to {maximum}, not {getattr(self, name)}."
                )
        largest_mb = max(self.batch_mb, self.body_kb / 1024)
        if self.bodies_mb < largest_mb:
            raise SettingError(
                f"{_format_name('bodies_mb')} must be at least {math.ceil(largest_mb)}, so that one"
                f" body of the largest size"
                " (batch_mb, body_kb) can be held."
            )
        for setting in fields(self):
            choices = setting.metadata["choices"]
            if choices and getattr(self, setting.name) not in choices:
                raise SettingError(f"{_format_name(setting.name)} must be one of {', '.join(choices)}.")


def variable_name(setting: "Field[Any]") -> str:
    """The name of the variable that a setting is read from."""
    return PREFIX + setting.name.upper()


def _format_name(name: str) -> str:
    """A setting, as whoever chose it by a variable or an option knows it."""
    return f"The setting {name} ({PREFIX}{name.upper()})"


def _reject_unknown(names: Iterable[str]) -> None:
    known_names = [variable_name(setting) for setting in fields(Settings)]
    unknown = [name for name in sorted(names) if name.startswith(PREFIX) and name not in known_names]
    messages = [_unknown_message(name, known_names) for name in unknown if not name.startswith(_OTHER_PREFIXES)]
    if messages:
        raise SettingError(" ".join(messages))


def _unknown_message(name: str, known_names: list[str]) -> str:
    # Without what all begin with, or everything would look alike.
    nearest = get_close_matches(
        name.removeprefix(PREFIX), [known_name.removeprefix(PREFIX) for known_name in known_names], 1
    )
    return f"{name} is no setting{f'; did you mean {PREFIX}{nearest[0]}?' if nearest else '.'}"


def _parse_value(setting: "Field[Any]", text: str) -> str | int:
    if isinstance(setting.default, str):
        return text
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"{variable_name(setting)} must be a whole number, not {text!r}.") from None
