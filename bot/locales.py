"""The catalogue of the bot's own sentences: `templates/locales/<locale>/<area>.yaml`.

A key is `area.name` (nested mappings join with dots); a value is a `str.format` pattern with named fields.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from bot.domain.text import Locale, Localized
from bot.errors import ConfigError
from bot.yaml_loader import load


def templates_root() -> Path:
    """The shipped templates: inside the installed package, or beside it in a source tree."""
    here = Path(__file__).resolve().parent
    packaged = here / "_templates"
    return packaged if packaged.is_dir() else here.parent / "templates"


def _flatten(prefix: str, value: object, into: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _flatten(f"{prefix}.{key}" if prefix else str(key), item, into)
    else:
        into[prefix] = str(value)


@cache
def catalogue(locale: Locale) -> Mapping[str, str]:
    """All sentences of one language, by key.

    Raises:
        ConfigError: a catalogue file is not readable YAML.
    """
    sentences: dict[str, str] = {}
    for path in sorted((templates_root() / "locales" / locale.value).glob("*.yaml")):
        try:
            content = load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise ConfigError(f"{path}: cannot be read: {error}; fix the file") from error
        _flatten(path.stem, content or {}, sentences)
    return sentences


class _Fields(string.Formatter):
    """`str.format` without attribute or index access, so that a value can never be walked into."""

    def get_field(
        self, field_name: str, _args: object, kwargs: Mapping[str, object]
    ) -> tuple[object, str]:
        return kwargs[field_name], field_name


def translate(locale: Locale, key: str, /, **fields: object) -> str:
    """The sentence `key` in one language, its fields filled; a `Localized` field is put into the same language.

    Raises:
        KeyError: the key is in no catalogue file, or a field is missing.
    """
    filled = {
        name: value.in_locale(locale) if isinstance(value, Localized) else value
        for name, value in fields.items()
    }
    return _Fields().vformat(catalogue(locale)[key], (), filled)


def say(key: str, /, **fields: object) -> Localized:
    """The sentence `key` in every language.

    Raises:
        KeyError: the key or a field is missing in a language.
    """
    return Localized(translate(Locale.EN, key, **fields), translate(Locale.ZH_CN, key, **fields))
