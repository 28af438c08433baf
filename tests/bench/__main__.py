"""`python -m tests.bench [NAME …]`: runs the benchmarks and prints their figures."""

import asyncio
import sys

from tests.bench import (
    agent_gpu,
    agent_idle,
    alert_anchor,
    burst,
    charts,
    diagnosis,
    full_pass,
    hypotheses,
    perturbed,
    report,
    slash_ack,
    storm,
    variants,
)

BENCHES = {
    "agent_gpu": agent_gpu.run,
    "agent_idle": agent_idle.run,
    "alert_anchor": alert_anchor.run,
    "burst": burst.run,
    "charts": charts.run,
    "diagnosis": diagnosis.run,
    "full_pass": full_pass.run,
    "hypotheses": hypotheses.run,
    "perturbed": perturbed.run,
    "report": report.run,
    "slash_ack": slash_ack.run,
    "storm": storm.run,
    "variants": variants.run,
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"bench: {unknown[0]}: no such benchmark; there are {', '.join(BENCHES)}")
    for name in names:
        for line in asyncio.run(BENCHES[name]()):
            sys.stdout.write(f"{name:<12} {line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
