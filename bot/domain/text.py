"""Text in every language that the bot speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Locale(StrEnum):
    """A language of the bot; the value is its BCP 47 tag."""

    EN = "en"
    ZH_CN = "zh-CN"


@dataclass(frozen=True, slots=True)
class Localized:
    """The same sentence in English and Chinese.

    What a person wrote has one wording only; `Localized.verbatim` carries it unchanged in both.
    """

    en: str
    zh: str

    @classmethod
    def verbatim(cls, text: str) -> Localized:
        """A text that has no translation: a person's words, a host name, a log line."""
        return cls(text, text)

    def in_locale(self, locale: Locale) -> str:
        """The wording for `locale`."""
        match locale:
            case Locale.EN:
                return self.en
            case Locale.ZH_CN:
                return self.zh

    def to_json(self) -> dict[str, str]:
        """`{"en": …, "zh-CN": …}`, the shape that is stored."""
        return {Locale.EN.value: self.en, Locale.ZH_CN.value: self.zh}

    @classmethod
    def from_json(cls, value: Mapping[str, str] | str) -> Localized:
        """Reads `to_json`'s shape; a plain string is taken verbatim; a missing Chinese wording falls back to English."""
        if isinstance(value, str):
            return cls.verbatim(value)
        english = value[Locale.EN.value]
        return cls(english, value.get(Locale.ZH_CN.value, english))


def listed(parts: Iterable[str | Localized]) -> Localized:
    """Several words as one list, each language with its own comma.

    >>> listed(["gpu-1", Localized("all", "全部")])
    Localized(en='gpu-1, all', zh='gpu-1、全部')
    """
    words = [Localized.verbatim(part) if isinstance(part, str) else part for part in parts]
    return Localized(", ".join(word.en for word in words), "、".join(word.zh for word in words))
