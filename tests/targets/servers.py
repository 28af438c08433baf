"""Stand-ins for the servers that reports go to: real sockets, state as the vendors document it, faults on demand."""

from __future__ import annotations

import email
import json
import re
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jsonschema import Draft202012Validator

SHAPES = Path(__file__).resolve().parent / "shapes"
TOKEN = "t0ps3cret-t0ken-value"


def shape(name: str) -> Mapping[str, Any]:
    return json.loads((SHAPES / f"{name}.json").read_text())


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def file(self) -> tuple[str, bytes]:
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        for part in email.message_from_bytes(head + self.body).walk():
            if part.get_filename():
                return str(part.get_filename()), part.get_payload(decode=True)
        raise AssertionError("no file in the form")


@dataclass
class Fault:
    """What goes wrong at a request. status None: the line goes dead. done: the server has done its work before."""

    method: str
    path: str
    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    done: bool = False
    body: object = None


Answer = tuple[int, object]


class Server:
    """One server on a free port; subclasses say what it answers."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                return

            def handle_any(self) -> None:
                parts = urlsplit(self.path)
                asked = Asked(
                    method=self.command,
                    path=parts.path,
                    query={key: value[-1] for key, value in parse_qs(parts.query).items()},
                    headers={key.lower(): value for key, value in self.headers.items()},
                    body=self.rfile.read(int(self.headers.get("content-length") or 0)),
                )
                with outer.lock:
                    outer.asked.append(asked)
                    fault = outer.fault_of(asked)
                    if fault is None or fault.done:
                        status, value = outer.answer(asked)
                    headers: Mapping[str, str] = {}
                    if fault is not None:
                        status, value, headers = fault.status, fault.body, fault.headers
                if status is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                content = json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815  names of http.server

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.httpd.shutdown()
        self.httpd.server_close()
        self.thread.join(5)

    def fault_of(self, asked: Asked) -> Fault | None:
        for fault in self.faults:
            if fault.method in ("*", asked.method) and re.search(fault.path, asked.path):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def count(self, method: str, path: str) -> int:
        return sum(
            item.method == method and bool(re.search(path, item.path)) for item in self.asked
        )


def faults_of(schema: Mapping[str, Any], value: object) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


@dataclass
class StoredPage:
    id: str
    title: str
    body: str
    version: int = 1
    parent: str | None = None
    status: str = "current"
    labels: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    file_versions: dict[str, int] = field(default_factory=dict)


class Confluence(Server):
    """What both kinds share: pages of one space, unique titles, versions that count by one."""

    schema = ""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, StoredPage] = {}
        self.next = 1000
        self.shape = shape(self.schema)
        self.misshapen: list[str] = []

    def add(self, title: str, body: str, parent: str | None = None) -> StoredPage:
        self.next += 1
        page = StoredPage(str(self.next), title, body, parent=parent)
        self.pages[page.id] = page
        return page

    def titled(self, title: str) -> list[StoredPage]:
        return [
            page
            for page in self.pages.values()
            if page.title.lower() == title.lower() and page.status == "current"
        ]

    def answer(self, asked: Asked) -> Answer:
        if TOKEN not in asked.headers.get("authorization", "") and "Basic" not in asked.headers.get(
            "authorization", ""
        ):
            return 401, {"message": "Client must be authenticated to access this resource."}
        if asked.method in self.shape and asked.headers.get("content-type") == "application/json":
            body = asked.json
            if isinstance(body, dict):
                found = faults_of(self.shape[asked.method], body)
                self.misshapen += found
                if found:
                    return 400, {"message": found[0]}
        if asked.path.endswith("/rest/api/content/search"):
            label = re.search(r'label = "([^"]+)"', asked.query["cql"])
            assert label
            found_pages = [p for p in self.pages.values() if label[1] in p.labels]
            return 200, {"results": [{"id": p.id} for p in found_pages[:1]]}
        if match := re.search(r"/rest/api/content/(\d+)/label$", asked.path):
            found = faults_of(self.shape["LABELS"], asked.json)
            self.misshapen += found
            if found:
                return 400, {"message": found[0]}
            self.pages[match[1]].labels |= {item["name"] for item in asked.json}
            return 200, {"results": []}
        return self.own(asked)

    def own(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def put_file(self, page: StoredPage, asked: Asked) -> Answer:
        assert asked.headers["x-atlassian-token"] == "nocheck"
        name, content = asked.file
        page.files[name] = content
        page.file_versions[name] = page.file_versions.get(name, 0) + 1
        return 200, {"results": [{"id": f"att{name}", "title": name}]}


class CloudServer(Confluence):
    """Confluence Cloud: v2 for pages, v1 for files, labels and search, all below `/wiki`."""

    schema = "confluence_cloud_v2"
    links: Mapping[str, str] = MappingProxyType({})

    def shown(self, page: StoredPage) -> dict[str, object]:
        return {
            "id": page.id,
            "status": page.status,
            "title": page.title,
            "spaceId": "77",
            "version": {"number": page.version},
            "body": {"storage": {"value": page.body, "representation": "storage"}},
            "_links": {"webui": f"/spaces/OPS/pages/{page.id}", **self.links},
        }

    def own(self, asked: Asked) -> Answer:
        path = asked.path.removeprefix("/wiki")
        assert path != asked.path, asked.path
        if path == "/api/v2/spaces":
            return 200, {"results": [{"id": "77"}] if asked.query["keys"] == "OPS" else []}
        if path == "/api/v2/pages" and asked.method == "GET":
            return 200, {"results": [self.shown(p) for p in self.titled(asked.query["title"])]}
        if path == "/api/v2/pages":
            body = asked.json
            if self.titled(body["title"]):
                return 400, {"errors": [{"status": 400, "title": "A page with this title exists"}]}
            page = self.add(body["title"], body["body"]["value"], body.get("parentId"))
            return 200, {**self.shown(page), "body": {}}
        if match := re.fullmatch(r"/api/v2/pages/(\d+)", path):
            page = self.pages.get(match[1])
            if page is None:
                return 404, {"errors": [{"title": "Not Found"}]}
            if asked.method == "PUT":
                body = asked.json
                if body["version"]["number"] != page.version + 1:
                    return 409, {"errors": [{"title": "Version conflict"}]}
                if any(other is not page for other in self.titled(body["title"])):
                    return 400, {"errors": [{"title": "A page with this title exists"}]}
                page.title, page.body = body["title"], body["body"]["value"]
                page.version += 1
            return 200, self.shown(page)
        if match := re.fullmatch(r"/rest/api/content/(\d+)/child/attachment", path):
            assert asked.method == "PUT"
            return self.put_file(self.pages[match[1]], asked)
        raise AssertionError(f"{asked.method} {asked.path} is no resource of Confluence Cloud")


class DataCenterServer(Confluence):
    """Confluence Data Center: `/rest/api/content` for everything; a file is made and renewed by two resources."""

    schema = "confluence_data_center"

    def shown(self, page: StoredPage) -> dict[str, object]:
        return {
            "id": page.id,
            "type": "page",
            "status": page.status,
            "title": page.title,
            "version": {"number": page.version},
            "body": {"storage": {"value": page.body, "representation": "storage"}},
            "_links": {"webui": f"/pages/viewpage.action?pageId={page.id}"},
        }

    def own(self, asked: Asked) -> Answer:
        path = asked.path
        if path == "/rest/api/content" and asked.method == "GET":
            if asked.query["spaceKey"] != "OPS":
                return 404, {"message": "No space with key"}
            return 200, {"results": [self.shown(p) for p in self.titled(asked.query["title"])]}
        if path == "/rest/api/content":
            body = asked.json
            if self.titled(body["title"]):
                return 400, {"message": "A page with this title already exists"}
            page = self.add(body["title"], body["body"]["storage"]["value"])
            return 200, self.shown(page)
        if match := re.fullmatch(r"/rest/api/content/(\d+)", path):
            page = self.pages.get(match[1])
            if page is None:
                return 404, {"message": "No content found with id"}
            if asked.method == "PUT":
                body = asked.json
                if body["version"]["number"] != page.version + 1:
                    return 409, {"message": "Version must be incremented on update."}
                page.title, page.body = body["title"], body["body"]["storage"]["value"]
                page.version += 1
            return 200, self.shown(page)
        if match := re.fullmatch(r"/rest/api/content/(\d+)/child/attachment", path):
            page = self.pages[match[1]]
            if asked.method == "GET":
                name = asked.query["filename"]
                known = [{"id": f"att{list(page.files).index(name)}"}] if name in page.files else []
                return 200, {"results": known}
            if asked.file[0] in page.files:
                return 400, {"message": "Cannot add a new attachment with same file name"}
            return self.put_file(page, asked)
        if match := re.fullmatch(r"/rest/api/content/(\d+)/child/attachment/att\d+/data", path):
            return self.put_file(self.pages[match[1]], asked)
        raise AssertionError(
            f"{asked.method} {asked.path} is no resource of Confluence Data Center"
        )


class GithubServer(Server):
    """Issues of one repository. may_label: whether the token may set labels; GitHub drops them in silence otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.issues: dict[int, dict[str, Any]] = {}
        self.deleted: set[int] = set()
        self.may_label = True
        self.shape = shape("github_issues")
        self.misshapen: list[str] = []

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        assert asked.headers["x-github-api-version"] == "2022-11-28"
        if asked.method in self.shape:
            found = faults_of(self.shape[asked.method], asked.json)
            self.misshapen += found
            if found or len(str(asked.json.get("title") or "")) > 256:
                return 422, {"message": "Validation Failed", "errors": [{"code": "custom"}]}
        if asked.path == "/repos/acme/ops/issues" and asked.method == "GET":
            issues = sorted(self.issues.values(), key=lambda item: -item["number"])
            if label := asked.query.get("labels"):
                issues = [item for item in issues if {"name": label} in item["labels"]]
            first = (int(asked.query.get("page", 1)) - 1) * int(asked.query["per_page"])
            return 200, issues[first : first + int(asked.query["per_page"])]
        if asked.path == "/repos/acme/ops/issues":
            return 201, self.open(**asked.json)
        if match := re.fullmatch(r"/repos/acme/ops/issues/(\d+)", asked.path):
            number = int(match[1])
            if number in self.deleted:
                return 410, {"message": "This issue was deleted"}
            issue = self.issues[number]
            issue.update(asked.json)
            return 200, issue
        return 404, {"message": "Not Found"}

    def open(
        self, *, title: str, body: str = "", labels: list[str] | None = None
    ) -> dict[str, Any]:
        number = len(self.issues) + 1
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "state_reason": None,
            "labels": [{"name": name} for name in labels or ()] if self.may_label else [],
            "html_url": f"https://github.example/acme/ops/issues/{number}",
        }
        return self.issues[number]
