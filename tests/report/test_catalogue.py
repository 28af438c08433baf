"""Every sentence of the report exists in both languages, with the same fields."""

from __future__ import annotations

import string

from bot.domain.text import Locale
from bot.locales import catalogue


def fields(pattern: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(pattern) if name}


def test_both_languages_have_the_same_sentences_with_the_same_fields():
    english, chinese = (
        {key: text for key, text in catalogue(locale).items() if key.startswith("report.")}
        for locale in Locale
    )
    assert english.keys() == chinese.keys()
    assert {k: fields(v) for k, v in english.items()} == {k: fields(v) for k, v in chinese.items()}
