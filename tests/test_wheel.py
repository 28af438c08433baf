"""The built wheel works outside the tree, with its templates inside, and each extra brings only what it says."""

import email
import os
import re
import subprocess
import sys
import zipfile

import pytest

from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that holds the unpacked wheel and nothing of the source tree."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(out), root],
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    [wheel] = out.glob("*.whl")
    unpacked = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    return unpacked


def run(site, script, *arguments):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "HOME": "/nonexistent"}
    return subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env=environment,
        cwd=site.parent,
    )


WHERE = "import bot, sys; sys.stderr.write(bot.__file__ + '\\n'); from bot.cli import main; main(sys.argv[1:])"


def test_the_knowledge_is_inside_and_has_no_fault(site):
    answer = run(site, WHERE, "sop", "lint")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.startswith(str(site))
    assert re.fullmatch(r"\d+ files, no fault\n", answer.stdout)


def test_the_notices_of_the_schema_data_are_inside(site):
    assert (site / "bot/blockkit/NOTICE.md").read_text(encoding="utf-8").count("MIT") > 1


def test_the_agent_loads_none_of_the_bots_libraries(site):
    script = (
        "import sys\nfrom bot.cli import main\n"
        "try: main(['agent', 'run', 'host_memory', '--json'])\n"
        "except SystemExit as end: code = end.code\n"
        "import bot.agent.server, bot.agent.child\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print('\\nLOADED', sorted(loaded & {'slack_bolt', 'slack_sdk', 'redis', 'jinja2', 'matplotlib',"
        " 'pandas', 'yaml', 'weasyprint'}), bot.__file__)"
    )
    answer = run(site, script)
    assert answer.returncode == 0, answer.stderr
    assert f"LOADED [] {site}" in answer.stdout


def test_each_extra_names_its_own_libraries(site):
    [metadata] = site.glob("rca_bot-*.dist-info/METADATA")
    headers = email.message_from_string(metadata.read_text(encoding="utf-8"))
    needs = headers.get_all("Requires-Dist")

    def of(extra):
        marks = [need for need in needs if re.search(rf"extra == ['\"]{extra}['\"]", need)]
        return {re.match(r"[A-Za-z0-9._-]+", need).group() for need in marks}

    base = {need.split(">")[0] for need in needs if "extra ==" not in need}
    assert base == {"typer", "structlog"}
    assert {"nvidia-ml-py", "psutil", "py-spy", "pyjwt", "starlette"} <= of("agent")
    assert not of("agent") & {"slack-bolt", "slack-sdk", "redis", "jinja2", "matplotlib", "pandas"}
    assert {"slack-bolt", "redis", "jinja2", "prometheus-api-client", "httpx"} <= of("bot")
    assert of("all") >= of("agent") | of("bot")
