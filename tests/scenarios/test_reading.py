"""Who reads incidents and reports, in which form; what the shell exports of the same store."""

import json
import subprocess
import sys
import time

import jsonschema

from bot.settings import load_settings
from bot.web.auth import signed_link
from bot.workspace.client import WorkspaceClient
from tests.scenarios.rig import CHANNEL, ROOT, TOKEN
from tests.scenarios.test_crash import notification
from tests.waiting import PATIENCE_SECONDS, until

READ = {"Authorization": "Bearer read"}


async def test_reports_are_for_readers_and_the_same_from_page_and_shell(deployment):
    rig = deployment
    await rig.start_bot()
    hostile = notification()
    hostile["commonAnnotations"]["summary"] = "P99 is 600 ms <script>alert(1)</script> <!channel>"
    await rig.http.post(f"{rig.bot_url}/webhooks/alertmanager", json=hostile, headers=TOKEN)
    async with WorkspaceClient(rig.workspace_url) as workspace:
        await workspace.wait_for(
            lambda m: m.is_reply and "most likely first" in m.all_text, channel=CHANNEL
        )
        texts = "".join(m.all_text for m in await workspace.messages(CHANNEL))
    assert "<!channel>" not in texts

    for path in ("/incidents", "/incidents/INC-1", "/incidents/INC-1/report.json"):
        assert (await rig.http.get(rig.bot_url + path)).status_code == 401
        wrong = {"Authorization": "Bearer other"}
        assert (await rig.http.get(rig.bot_url + path, headers=wrong)).status_code == 401

    listing = await rig.http.get(f"{rig.bot_url}/incidents", headers=READ)
    assert listing.headers["content-type"].startswith("text/html")
    assert "<script>" not in listing.text
    assert "default-src 'none'" in listing.headers["content-security-policy"]
    chinese = await rig.http.get(f"{rig.bot_url}/incidents?locale=zh-CN", headers=READ)
    assert "事件列表" in chinese.text

    page = await rig.http.get(f"{rig.bot_url}/incidents/INC-1", headers=READ)
    assert "<script>alert" not in page.text
    assert (await rig.report("INC-1", "docx")).status_code == 404
    assert (await rig.report("INC-99")).status_code == 404
    pdf = await rig.report("INC-1", "pdf")
    assert pdf.content.startswith(b"%PDF-")

    settings = load_settings({"RCA_READ_TOKEN": "read", "RCA_PUBLIC_URL": rig.bot_url})
    link = signed_link(settings, "/incidents/INC-1/report.md", valid_seconds=60, now=time.time())
    assert (await rig.http.get(link)).status_code == 200
    assert (await rig.http.get(link.replace("report.md", "report.json"))).status_code == 401
    late = signed_link(settings, "/incidents/INC-1/report.md", valid_seconds=-1, now=time.time())
    assert (await rig.http.get(late)).status_code == 401

    document = (await rig.report("INC-1")).json()
    schema = json.loads((ROOT / "templates/report/postmortem.schema.json").read_text())
    jsonschema.validate(document, schema)
    out = rig.root / "out"
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "bot.cli",
            "export",
            "INC-1",
            "--format",
            "json,md",
            "--out",
            str(out),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env=rig.environment,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [str(out / "INC-1.json"), str(out / "INC-1.md")]
    assert json.loads((out / "INC-1.json").read_text())["timeline"] == document["timeline"]

    async def counted():
        metrics = await rig.http.get(f"{rig.bot_url}/metrics")
        return 'rca_bot_alert_groups_total{outcome="opened"} 1.0' in metrics.text

    await until(counted, "the bot counts what it took")


async def test_an_unknown_incident_or_format_is_one_line_in_the_shell(deployment):
    for words, code in ((["INC-7"], 1), (["INC-7", "--format", "docx"], 2)):
        answer = subprocess.run(
            [sys.executable, "-m", "bot.cli", "export", *words, "--out", str(deployment.root)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env=deployment.environment,
        )
        assert answer.returncode == code
        assert "Traceback" not in answer.stderr
