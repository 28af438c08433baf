"""Everything that a call or an interaction works with, wired once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.workspace.config import WorkspaceConfig
from bot.workspace.faults import FaultPlan
from bot.workspace.ratelimit import RateLimiter
from bot.workspace.state import Workspace
from bot.workspace.subscription import Subscription
from bot.workspace.tickets import Tickets
from bot.workspace.traffic import Traffic


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts of a running workspace. `sharing`: uploads answered whose message is still to appear."""

    workspace: Workspace
    config: WorkspaceConfig
    tickets: Tickets
    faults: FaultPlan
    traffic: Traffic
    limiter: RateLimiter
    subscription: Subscription
    is_rate_limited: bool
    sharing: set[asyncio.Task[None]] = field(default_factory=set)
