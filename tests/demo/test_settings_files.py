import pytest

from bot.agent.settings import load_settings as load_agent_settings
from bot.demo.faults import Fault
from bot.demo.programs import CHANNEL, Programs
from bot.demo.settings_files import NODE, Ports, RunFiles, Secrets
from bot.domain.text import Locale
from bot.inventory import load_inventory
from bot.settings import load_settings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFiles, Ports]:
    files, ports = RunFiles(root=tmp_path_factory.mktemp("a 'quoted' \"run\"")), Ports.choose(1)
    files.write(ports)
    return files, ports


def test_ports_are_all_different() -> None:
    ports = Ports.choose(1)

    values = [getattr(ports, name) for name in Ports.__slots__]
    assert len(set(values)) == len(values) == 11


def test_agent_reads_what_was_written_for_it(run: tuple[RunFiles, Ports]) -> None:
    files, ports = run

    settings = load_agent_settings(files.agent_environment(ports))

    target = settings.services["translate-api"]
    assert settings.node == NODE
    assert settings.port == ports.agent
    assert target.pidfile == files.service / "translate-api.pid"
    assert target.metrics_url == f"http://127.0.0.1:{ports.service}/metrics"
    assert settings.nvml_library.startswith("standin:")


def test_bot_reads_what_was_written_for_it(run: tuple[RunFiles, Ports]) -> None:
    files, ports = run
    programs = Programs(
        ports=ports, files=files, tokens=Secrets(), fault=Fault.PINNED, locale=Locale.ZH_CN
    )

    settings = load_settings(programs.bot_settings)
    inventory = load_inventory(settings.nodes)

    assert settings.locale is Locale.ZH_CN
    assert settings.alert_channel == CHANNEL
    assert [node.url for node in inventory.nodes_of("translate-api")] == [
        f"http://127.0.0.1:{ports.agent}"
    ]
    assert settings.agent_key is not None
    assert settings.agent_key.stat().st_mode & 0o077 == 0


def test_secrets_are_new_each_run_and_not_printed() -> None:
    first, second = Secrets(), Secrets()

    assert first.webhook != second.webhook
    assert first.webhook not in repr(first)
