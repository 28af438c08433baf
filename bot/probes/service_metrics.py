"""Does the engine move: a frozen loop behind healthy checks, a queue that only grows."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments, window_argument
from bot.device.engine import EngineMoment, engine_moment
from bot.device.exposition import scrape
from bot.domain.finding import Finding
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, Sampled, critical, describe, info, warning

QUEUE_REQUESTS = 5
"""Our judgement: a handful waiting is batching, not a queue."""
SCRAPE_TIMEOUT_SECONDS = 2.0
"""Our judgement: two scrapes and the window must fit the deadline; a slower page is a finding in itself."""


@describe(
    summary="Queue, running requests and progress counters from the engine's own metrics page",
    cost=Cost.CHEAP,
    findings=("svc.engine_frozen", "svc.queue_growing", "svc.metrics_ok"),
    arguments=(SERVICE, window_argument(2.5)),
    needs=("[services.<name>] metrics of vLLM, SGLang, TGI, Triton, TorchServe or alike",),
    deadline_seconds=8.0,
)
def service_metrics(context: ProbeContext, arguments: Arguments) -> Reading:
    """Scrapes the page twice, `window_s` apart."""
    target = context.service(arguments.text("service"))

    def look() -> EngineMoment:
        moment = engine_moment(scrape(target.metrics_url, SCRAPE_TIMEOUT_SECONDS))
        if moment is None:
            raise ProbeError(
                "the metrics page is of no known engine; an empty page is an answer too",
                reason=Reason.UNSUPPORTED,
            )
        return moment

    sampled = context.sample_twice(look, arguments.number("window_s"))
    progress = _progress(sampled)
    frozen, growing = _frozen(sampled, progress), _growing(sampled)
    findings = [finding for finding in (frozen, growing) if finding is not None]
    not_checked: list[str] = []
    if progress is None:
        not_checked.append("progress: the counters are not told, or restarted in between")
    if sampled.after.waiting is None:
        not_checked.append("queue: the engine does not tell how many requests wait")
    if not findings and not not_checked:
        findings.append(info("svc.metrics_ok", "engine counters advance, queue short"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": sampled.seconds,
            "engine": sampled.after.engine,
            "running_requests": _told(sampled.after.running),
            "waiting_requests": _told(sampled.after.waiting),
            "waiting_requests_before": _told(sampled.before.waiting),
            "progress_per_s": _told(None if progress is None else progress / sampled.seconds),
            "kv_cache_ratio": _told(sampled.after.cache_ratio),
            "process_start_time_s": _told(sampled.after.started_at),
            "scrape_seconds": max(sampled.before.scrape_seconds, sampled.after.scrape_seconds),
        },
    )


def _told(value: float | None) -> object:
    return (
        value
        if value is not None
        else {"state": "not_supported", "detail": "the engine does not tell"}
    )


def _progress(sampled: Sampled[EngineMoment]) -> float | None:
    before, after = sampled.before.progress, sampled.after.progress
    if before is None or after is None or after < before:
        return None
    return after - before


def _frozen(sampled: Sampled[EngineMoment], progress: float | None) -> Finding | None:
    before, after = sampled.before, sampled.after
    # Work must be there at both ends: an engine without requests stands still and is well.
    held = min(
        (before.running or 0) + (before.waiting or 0), (after.running or 0) + (after.waiting or 0)
    )
    if progress != 0 or held <= 0:
        return None
    text = (
        f"no counter moved in {sampled.seconds:.1f} s while {held:.0f} requests are held; "
        "the metrics page itself answers"
    )
    return critical("svc.engine_frozen", text, value=held, unit="requests", threshold=0)


def _growing(sampled: Sampled[EngineMoment]) -> Finding | None:
    before, after = sampled.before.waiting, sampled.after.waiting
    if before is None or after is None or after <= QUEUE_REQUESTS or after < before:
        return None
    moves = "growing" if after > before else "not falling"
    return warning(
        "svc.queue_growing",
        f"waiting requests {after:.0f} and {moves}",
        value=after,
        unit="requests",
        threshold=QUEUE_REQUESTS,
    )
