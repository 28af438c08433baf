import re
from pathlib import Path

from bot.demo.node_series import NodeSeries


def test_this_machine_shows_the_series_that_the_rules_ask_for() -> None:
    page = NodeSeries().exposition().decode()

    names = set(re.findall(r"^(\w+)", page, re.MULTILINE))
    assert {
        "node_cpu_seconds_total",
        "node_context_switches_total",
        "node_procs_blocked",
        "node_memory_MemAvailable_bytes",
        "node_netstat_Tcp_RetransSegs",
        "node_network_receive_drop_total",
        "node_load1",
    } <= names


def test_units_are_converted_and_missing_files_leave_their_series_out(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2\ncpu0 200 0 100 0 0 0 0 0\nctxt 7\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/cpu").write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=2500000\n")
    (tmp_path / "diskstats").write_text(
        "8 0 sda 1 0 8 4000 2 0 16 500 0 7 9 0\n7 0 loop0 9 9 9 9 9 9 9 9 9 9 9 9\n"
    )

    page = NodeSeries(tmp_path).exposition().decode()

    assert 'node_cpu_seconds_total{cpu="0",mode="user"} 2.0' in page
    assert "node_pressure_cpu_waiting_seconds_total 2.5" in page
    assert 'node_disk_read_bytes_total{device="sda"} 4096.0' in page
    assert 'node_disk_write_time_seconds_total{device="sda"} 0.5' in page
    assert "loop0" not in page
    assert "node_memory_MemAvailable_bytes" not in page
