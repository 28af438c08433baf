"""Xid lines in all their spellings, and lines that only look like one."""

from __future__ import annotations

import pytest

from bot.device.kernel_log import KernelLine, parse_line
from bot.device.xid import parse_xid, xid_events
from bot.device.xid_catalog import classify, needs_hands

# line, code, pci, pid, process
LINES = [
    ("[88.1] NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
     79, "0000:5d:00", None, None),
    ("[Fri Mar  6 21:29:39 2026] NVRM: Xid (PCI:0000:3b:00): 31, pid=41001, name=python3, Ch 00000016, intr 1",
     31, "0000:3b:00", 41001, "python3"),
    ("Mar  6 21:29:40 node-1 kernel: NVRM: Xid (PCI:0000:3c:00): 94, pid=41002, name=vllm, Contained ECC error",
     94, "0000:3c:00", 41002, "vllm"),
    ("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", 79, "0000:01:00", None, None),
    ("[  900.0] NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None, None),
    ("2026-03-06T21:30:00.112233+08:00 node-4 kernel: NVRM: Xid (PCI:0018:01:00): 119, pid=2077, "
     "name=triton_server, Timeout after 6s of waiting for RPC response from GPU1 GSP!",
     119, "0018:01:00", 2077, "triton_server"),
    ("[1.1] NVRM: Xid (PCI:0000:D8:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error",
     74, "0000:d8:00", None, None),
]  # fmt: skip


@pytest.mark.parametrize("row", LINES, ids=[f"{row[1]}-{index}" for index, row in enumerate(LINES)])
def test_line_is_parsed_in_every_spelling(
    row: tuple[str, int, str, int | None, str | None],
) -> None:
    text, code, pci, pid, process = row
    event = parse_xid(parse_line(text))
    assert event is not None
    assert (event.code, event.pci, event.pid, event.process) == (code, pci, pid, process)


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: GPU at PCI:0000:5d:00: GPU-1f0c2a77-0000-4a5e-9b11-000000000000",
        "[333.3] myapp: retrying after Xid-like text: 79, not from the driver",
    ],
    ids=["no-number", "announcement", "application"],
)
def test_line_that_only_looks_like_one_gives_nothing(text: str) -> None:
    assert parse_xid(parse_line(text)) is None


def test_switch_error_is_not_the_xid_of_that_number() -> None:
    text = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 41 egress"
    event = parse_xid(KernelLine(text, 1.0))
    assert event is not None
    assert (event.code, event.is_switch) == (12028, True)


def test_lines_of_one_second_are_one_event_with_several_details() -> None:
    head = "NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, "
    lines = [
        KernelLine(head + "Graphics SM Warp Exception", 10.0),
        KernelLine(head + "Graphics SM Global Exception", 10.2),
        KernelLine(head + "Graphics Exception: ESR", 10.9),
        KernelLine(head + "Graphics SM Warp Exception", 60.0),
    ]
    assert [(event.code, event.lines) for event in xid_events(lines)] == [(13, 3), (13, 1)]


def test_loss_without_a_code_is_an_event_and_joins_its_79() -> None:
    alone = [KernelLine("NVRM: GPU at PCI:0000:5d:00 has fallen off the bus.", 5.0)]
    assert [(event.code, event.pci) for event in xid_events(alone)] == [(None, "0000:5d:00")]
    both = [
        KernelLine("NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has", 5.0),
        *alone,
    ]
    assert [(event.code, event.lines) for event in xid_events(both)] == [(79, 2)]


def test_sources_that_disagree_are_all_given() -> None:
    verdicts = {item.source: item.verdict for item in classify(63)}
    assert verdicts["nvidia-catalog"] == "IGNORE"
    assert verdicts["gpud"] == "fatal"
    assert all(item.catalog_version for item in classify(63))
    assert {item.verdict for item in classify(9999)} >= {"not listed"}
    assert needs_hands(79)
    assert needs_hands(9999)
    assert not needs_hands(31)
