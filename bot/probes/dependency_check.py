"""Do the services that this one depends on take a connection from this node."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import SERVICE, Arguments
from bot.device.endpoints import MAX_ENDPOINTS, Contact, contact_all, endpoint_of
from bot.domain.finding import Finding, FindingSeverity
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

CONNECT_TIMEOUT_SECONDS = 2.0
"""Our judgement: a connection inside a data centre takes milliseconds; two seconds are two lost SYNs."""
SLOW_SECONDS = 0.5
"""Our judgement: a connection that takes half a second has lost a packet or meets a full accept queue."""


@describe(
    summary="Opens a connection to each approved dependency of a service",
    cost=Cost.MODERATE,
    findings=("dep.unreachable", "dep.slow", "dep.ok"),
    arguments=(SERVICE,),
    needs=("[services.<name>] dependencies",),
)
def dependency_check(context: ProbeContext, arguments: Arguments) -> Reading:
    """Only addresses of the node's own configuration are ever contacted."""
    target = context.service(arguments.text("service"))
    if not target.dependencies:
        raise ProbeError(
            "the service has no approved dependencies on this node; set [services.<name>] dependencies",
            reason=Reason.UNSUPPORTED,
        )
    if any(endpoint_of(address) is None for address in target.dependencies):
        raise ProbeError("an entry of [services.<name>] dependencies names no host and port")
    contacts = contact_all(target.dependencies, CONNECT_TIMEOUT_SECONDS)
    denied = [contact for contact in contacts if contact.is_denied]
    if len(denied) == len(contacts):
        raise ProbeError(
            f"connect to {denied[0].name}: {denied[0].failure}; let the agent open it, or take it off the list",
            reason=Reason.UNAUTHORISED,
        )
    # What this node forbids was not looked at: the peer may be well or not.
    not_checked = [f"{contact.name}: {contact.failure}" for contact in denied]
    if len(target.dependencies) > MAX_ENDPOINTS:
        more = len(target.dependencies) - MAX_ENDPOINTS
        not_checked.append(f"{more} dependencies beyond the first {MAX_ENDPOINTS}")
    findings = [finding for contact in contacts if (finding := _finding(contact)) is not None]
    if not findings and not not_checked:
        findings.append(info("dep.ok", "all dependencies take a connection"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={"dependencies": [asdict(contact) for contact in contacts]},
    )


def _finding(contact: Contact) -> Finding | None:
    if contact.is_denied:
        return None
    if contact.failure is not None:
        return Finding(
            id="dep.unreachable",
            severity=FindingSeverity.CRITICAL,
            summary=f"connect to {contact.name} from this node: {contact.failure}",
        )
    if contact.seconds <= SLOW_SECONDS:
        return None
    text = (
        f"{contact.name} takes a connection after {contact.seconds:.1f} s (limit {SLOW_SECONDS} s)"
    )
    return critical("dep.slow", text, value=contact.seconds, unit="s", threshold=SLOW_SECONDS)
