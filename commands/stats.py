"""`/rca stats`: what the incidents of a span add up to."""

from __future__ import annotations

from datetime import timedelta

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from bot.learning.statistics import LEAST_FOR_MEDIAN, LEAST_FOR_P90, Share, statistics_of
from bot.signed_link import signed_link
from commands import _line
from commands._reply import shown

USAGE = "stats [range=90d]"
MOST_CAUSES = 5
MOST_SPOTS = 5
LINK_SECONDS = 24 * 3600.0


@command(
    name="stats",
    usage=USAGE,
    en="Step timings, first guesses, recurrence, wasted probes, blind spots and overdue items, each with its n.",
    zh="各阶段耗时、首次猜测准确率、复发率、无效探针、盲区与逾期事项，均注明样本数。",
    needs_incident=False,
)
async def stats(call: Call, services: Services) -> Reply:
    """Figures over all channels, without naming an incident; the page and the CSV have the rest."""
    line = _line.read(call.text, short=("range",))
    seconds = _line.duration(line.options.get("range") or line.text or "90d", USAGE)
    since = call.at - timedelta(seconds=seconds)
    found = statistics_of(await services.archive.pasts(), since, call.at)
    return shown(
        "stats",
        {
            "days": f"{seconds / 86400:.3g}",
            "count": found.count,
            "open": found.open,
            "drills": found.drills,
            "severities": dict(found.severities),
            "timings": [
                {"name": item.name.value, "n": item.n, "median": item.median_s, "p90": item.p90_s}
                for item in found.timings
            ],
            "least": {"median": LEAST_FOR_MEDIAN, "p90": LEAST_FOR_P90},
            "shares": [
                _share("first_guess", found.first_guess),
                _share("recurrence", found.recurrence),
                _share("wasted", found.wasted),
            ],
            "causes": [
                {"title": title.to_json(), "count": count}
                for _, title, count in found.causes[:MOST_CAUSES]
            ],
            "blind_spots": [
                {"service": item.service, "what": item.what.to_json(), "count": item.count}
                for item in found.blind_spots[:MOST_SPOTS]
            ],
            "overdue": len(found.overdue),
            "page": signed_link(
                services.settings,
                "/stats",
                valid_seconds=LINK_SECONDS,
                now=call.at.timestamp(),
                range=f"{max(1, round(seconds / 86400))}d",
                locale=call.locale.value,
            ),
        },
    )


def _share(name: str, share: Share) -> dict[str, object]:
    return {"name": name, "part": share.part, "n": share.n, "ratio": share.ratio}
