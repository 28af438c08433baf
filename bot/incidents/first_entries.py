"""The first entries of an incident's timeline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from bot.domain.alert import AlertGroup
from bot.domain.instant import to_rfc3339
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.alert_words import scope_words
from bot.inventory import Inventory
from bot.locales import say

if TYPE_CHECKING:
    from bot.incidents.opening import Opening
