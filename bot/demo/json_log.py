"""Application logs as JSON lines, one object a line, as log shippers like them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path


class JsonLines(logging.Formatter):
    """`{"ts", "level", "service", "msg", ...}`; more fields come through `extra={"fields": {...}}`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "msg": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def open_json_log(path: Path, *, service: str) -> logging.Logger:
    """A logger of its own that appends to `path`; one per file, whoever asks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    logger = logging.getLogger(f"demo.{path}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        handler = logging.FileHandler(path, encoding="utf-8")
        handler.setFormatter(JsonLines(service))
        logger.addHandler(handler)
    return logger
