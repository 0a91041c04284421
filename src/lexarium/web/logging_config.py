"""The server's log: one JSON object a line, or readable text on a terminal."""

import json
import logging
from typing import Any

import orjson

from lexarium.domain.timestamps import format_timestamp


class JsonFormatter(logging.Formatter):
    """A record of the log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": format_timestamp(int(record.created * 1000)) + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _escape_surrogates(record.getMessage()),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = _escape_surrogates(self.formatException(record.exc_info))
        return _escape_control_chars(orjson.dumps(line, option=orjson.OPT_NON_STR_KEYS).decode())


class TextFormatter(logging.Formatter):
    """A record of the log as a line that people read; only a trace has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as it is called there
        record.message = _escape_control_chars(record.message)
        return super().formatMessage(record)


class OncePerSecondFilter(logging.Filter):
    """Lets a logger say something once a second: while a database is away every request has the same to say."""

    _next_allowed = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        is_allowed = record.created >= self._next_allowed
        if is_allowed:
            self._next_allowed = record.created + 1
        return is_allowed


def _escape_control_chars(text: str) -> str:
    """The text; what of it ends a line somewhere, or steers a terminal, is spelt out as JSON does."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)


def _escape_surrogates(text: str) -> str:
    """The text; what of it no encoding can hold, such as a byte of a file's name that was not UTF-8, is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def build_logging_config(log_format: str, is_terminal: bool) -> dict[str, Any]:
    """How Python's logging shall be set up; `kind` is the setting `log`."""
    is_text = log_format == "text" or (log_format == "auto" and is_terminal)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {
                "()": "lexarium.web.logging_config.TextFormatter",
                "format": "%(asctime)s %(levelname)s %(message)s",
            },
            "json": {"()": "lexarium.web.logging_config.JsonFormatter"},
        },
        "filters": {"seldom": {"()": "lexarium.web.logging_config.OncePerSecondFilter"}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "text" if is_text else "json"},
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # What uvicorn says of its starting and stopping helps nobody.
            "uvicorn.error": {"level": "WARNING"},
            "alembic": {"level": "WARNING"},
            "lexarium.web.http.problems": {"filters": ["seldom"]},
        },
    }
