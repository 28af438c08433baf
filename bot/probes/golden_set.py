"""Does the model still answer as it did: golden requests against the service's own endpoint."""

from __future__ import annotations

import math

from bot.argument import SERVICE, Arguments
from bot.device.golden import GoldenAnswer, ask_golden, not_configured, read_golden
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

MISMATCH_RATIO = 0.05
"""Our judgement: one in twenty may differ by a tie between tokens; more is the model."""
NAN_ANSWERS = 0
"""Our judgement: no healthy model answers NaN, so that one is enough."""
REQUEST_TIMEOUT_SECONDS = 10.0
"""Our judgement: a golden answer is short; a slower one is a latency incident, not an accuracy one."""
TIME_LIMIT_SECONDS = 50.0
"""Our judgement: the set ends before the deadline, so that what was compared by then is not lost."""


@describe(
    summary="Sends the golden requests to the service and compares the answers within their tolerance",
    cost=Cost.HEAVY,
    findings=("model.golden_mismatch", "model.nan_output", "model.golden_ok"),
    arguments=(SERVICE,),
    needs=("[services.<name>] golden_url and golden_file",),
    deadline_seconds=60.0,
)
def golden_set(context: ProbeContext, arguments: Arguments) -> Reading:
    """One request at a time; the service serves its customers meanwhile."""
    target = context.service(arguments.text("service"))
    if target.golden_url is None or target.golden_file is None:
        raise not_configured()
    requests = read_golden(target.golden_file)
    started = context.monotonic()
    answers: list[GoldenAnswer] = []
    for number, request in enumerate(requests):
        left = TIME_LIMIT_SECONDS - (context.monotonic() - started)
        if left <= 0:
            break
        context.mark(f"request {number}")
        limit = min(REQUEST_TIMEOUT_SECONDS, left)
        answers.append(ask_golden(target.golden_url, number, request, limit))
    failures = [answer for answer in answers if answer.failure is not None]
    if len(failures) == len(answers) and failures[0].failure is not None:
        raise failures[0].failure
    told = [answer for answer in answers if answer.failure is None]
    not_checked: list[str] = []
    if failures:
        not_checked.append(f"{len(failures)} of {len(answers)} requests: {failures[0].failure}")
    if len(answers) < len(requests):
        not_checked.append(f"{len(requests) - len(answers)} requests: the time was up")
    findings = _findings(told)
    if not findings and not not_checked:
        findings.append(info("model.golden_ok", "golden answers within tolerance"))
    errors = [answer.largest_error for answer in told if math.isfinite(answer.largest_error)]
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "requests": len(requests),
            "compared": len(told),
            "mismatched": [answer.number for answer in told if not answer.is_equal],
            "nan_answers": [answer.number for answer in told if answer.has_nan],
            "largest_numeric_error_ratio": max(errors, default=None),
            "window_s": context.monotonic() - started,
        },
    )


def _findings(told: list[GoldenAnswer]) -> list[Finding]:
    findings: list[Finding] = []
    bad = sum(answer.has_nan for answer in told)
    if bad > NAN_ANSWERS:
        text = f"{bad} of {len(told)} golden answers hold NaN, infinity or nothing where a number belongs"
        findings.append(
            critical("model.nan_output", text, value=bad, unit="answers", threshold=NAN_ANSWERS)
        )
    different = sum(not answer.is_equal for answer in told)
    ratio = different / len(told)
    if ratio > MISMATCH_RATIO:
        text = f"{different} of {len(told)} golden answers differ beyond tolerance"
        findings.append(
            critical(
                "model.golden_mismatch", text, value=ratio, unit="ratio", threshold=MISMATCH_RATIO
            )
        )
    return findings
