"""Logging of the server: one JSON object per line, or text on a terminal."""

import json
import logging
from typing import Any

import orjson

from lexarium.domain.text.timestamps import format_timestamp


class JsonFormatter(logging.Formatter):
    """Format a log record as one line of JSON."""

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
    """Format a log record as a line of text; only tracebacks have several lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - name of the base class
        record.message = _escape_control_chars(record.message)
        return super().formatMessage(record)


class OncePerSecondFilter(logging.Filter):
    """Pass one record per second: while the database is unavailable, every request logs the same."""

    _next_allowed = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.created < self._next_allowed:
            return False
        self._next_allowed = record.created + 1
        return True


def _escape_control_chars(text: str) -> str:
    """Escape line ends and terminal control characters as JSON does."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)


def _escape_surrogates(text: str) -> str:
    # Lone surrogates come from names of files that are not UTF-8.
    return text.encode("utf-8", "backslashreplace").decode()


def build_logging_config(log_format: str, is_terminal: bool) -> dict[str, Any]:
    """Return the configuration of `logging` for a value of the setting `log`."""
    is_text = log_format == "text" or (log_format == "auto" and is_terminal)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"()": TextFormatter, "format": "%(asctime)s %(levelname)s %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "filters": {"seldom": {"()": OncePerSecondFilter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "text" if is_text else "json"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # uvicorn's messages on starting and stopping are noise.
            "uvicorn.error": {"level": "WARNING"},
            "alembic": {"level": "WARNING"},
            "lexarium.web.http.problems": {"filters": ["seldom"]},
        },
    }
