"""The kernel log in the forms in which it is found, and what is no kernel log."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.device.files import READ_LIMIT_BYTES
from bot.device.kernel_log import MAX_RECORDS, newest, parse_line, read_kernel_log, record_lines
from bot.device.xid import xid_events
from bot.errors import ProbeError

PREFIXES = {
    "uptime": ("[  900.500000] ", 900.5),
    "caller": ("[  900.500000][ T1234] ", 900.5),
    "level": ("<4>[  900.500000] ", 900.5),
    "words": ("kern  :err   : [  900.500000] ", 900.5),
    "ctime": ("[Fri Mar  6 21:29:39 2026] ", None),
    "syslog": ("Mar  6 21:29:40 node-1 kernel: ", None),
    "journal": ("Mar 06 21:29:40 node-1 kernel: [  900.5] ", None),
    "iso": ("2026-03-06T21:30:00,112233+08:00 node-1 kernel: ", None),
    "none": ("", None),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_prefix_is_taken_off_whatever_wrote_it(name: str) -> None:
    prefix, uptime = PREFIXES[name]
    line = parse_line(f"{prefix}NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus.")
    assert line.text.startswith("NVRM: Xid")
    assert line.uptime_seconds == uptime
    assert [event.code for event in xid_events([line])] == [79]


@pytest.mark.parametrize(
    "line",
    [
        "[333.3] myapp: NVRM: Xid (PCI:0000:5d:00): 79, copied from dmesg",
        "Mar  6 21:29:40 node-1 collector[77]: NVRM: Xid (PCI:0000:5d:00): 79",
        "[1.0] systemd[1]: has fallen off the bus",
        "[1.0] NVRM: Xid (PCI:0000:5d:00): seventy-nine",
        "[1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.144.03",
    ],
)
def test_quotation_or_other_message_is_no_event(line: str) -> None:
    assert xid_events([parse_line(line)]) == ()


OFF_THE_BUS = """
NVRM: The NVIDIA GPU 0000:61:00.0
NVRM: (PCI ID: 10de:2330) installed in this system has
NVRM: fallen off the bus and is not responding to commands.
""".strip()


@pytest.mark.parametrize("prefix", [PREFIXES[name][0] for name in PREFIXES], ids=list(PREFIXES))
def test_loss_told_over_several_lines_is_one_event_with_its_address(prefix: str) -> None:
    lines = [parse_line(prefix + line) for line in OFF_THE_BUS.splitlines()]
    assert [(event.code, event.pci) for event in xid_events(lines)] == [(None, "0000:61:00")]


def test_loss_told_in_one_record_of_the_device_is_one_event_with_its_address() -> None:
    text = OFF_THE_BUS.replace("\n", "\\x0a")
    lines = record_lines(f"3,1,12000000,-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:61:00.0\n")
    assert [(event.code, event.pci) for event in xid_events(lines)] == [(None, "0000:61:00")]
    assert lines[-1].uptime_seconds == 12.0


def test_losses_of_two_cards_at_once_are_two_events_however_their_lines_mix() -> None:
    text = """
[ 12.0] NVRM: Xid (PCI:0000:cb:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[ 12.0] NVRM: Xid (PCI:0000:cc:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[ 12.0] NVRM: GPU 0000:cb:00.0: GPU has fallen off the bus.
[ 12.0] NVRM: GPU 0000:cc:00.0: GPU has fallen off the bus.
[ 12.0] NVRM: GPU 0000:cb:00.0: GPU serial number is 1653.
[ 99.0] NVRM: GPU 0000:cb:00.0: GPU has fallen off the bus.
""".strip()
    events = xid_events(parse_line(line) for line in text.splitlines())
    assert [(event.code, event.pci, event.lines) for event in events] == [
        (79, "0000:cb:00", 3),
        (79, "0000:cc:00", 2),
    ]


def test_same_code_at_another_second_is_counted_again_without_an_uptime_too() -> None:
    line = "[Fri Mar  6 11:43:{:02} 2026] NVRM: Xid (PCI:0000:CB:00): 13, pid=7, name=a, Graphics"
    events = xid_events(parse_line(line.format(second)) for second in (9, 9, 9, 30, 58))
    assert [event.lines for event in events] == [3, 1, 1]


def test_long_log_is_read_from_its_end(tmp_path: Path) -> None:
    """An incident is told by the newest lines; a file of months holds more than is read."""
    path = tmp_path / "kern.log"
    filler = "[1.0] usb 1-1: new device\n" * (READ_LIMIT_BYTES // 20)
    path.write_text(filler + "[99.0] NVRM: Xid (PCI:0000:5d:00): 79, pid=7, name=a, GPU\n")
    assert path.stat().st_size > READ_LIMIT_BYTES
    lines = read_kernel_log(path)
    assert [event.code for event in xid_events(lines)] == [79]
    assert {line.text for line in lines[:-1]} == {"usb 1-1: new device"}


def test_records_beyond_the_bound_are_the_oldest() -> None:
    records = (f"6,{number},{number},-;line {number}\n" for number in range(MAX_RECORDS + 5))
    kept = newest(records)
    assert len(kept) == MAX_RECORDS
    assert (kept[0].startswith("6,5,"), kept[-1].startswith(f"6,{MAX_RECORDS + 4},")) == (
        True,
        True,
    )


@pytest.mark.parametrize(
    "content", [b"\x00\x01\x02", b"\xff\xfe" * 50], ids=["binary", "other-code"]
)
def test_file_that_is_no_log_is_an_error_and_not_a_quiet_kernel(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "kmsg"
    path.write_bytes(content)
    with pytest.raises(ProbeError, match="no kernel log"):
        read_kernel_log(path)
