"""A git server over HTTP that asks for a password: git's own backend behind a small door."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


class GitHttp:
    """Serves the repositories below `root` to whoever has the token; remembers what it was asked with."""

    def __init__(self, root: Path, user: str, token: str) -> None:
        wanted = "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()
        self.refused = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def handle_any(self) -> None:
                if self.headers.get("authorization") != wanted:
                    outer.refused += 1
                    self.send_response(401)
                    self.send_header("www-authenticate", 'Basic realm="git"')
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                environment = {
                    **os.environ,
                    "GIT_PROJECT_ROOT": str(root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "REMOTE_USER": "bot",
                    "REQUEST_METHOD": self.command,
                    "PATH_INFO": parts.path,
                    "QUERY_STRING": parts.query,
                    "CONTENT_TYPE": self.headers.get("content-type") or "",
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding") or "",
                    "GIT_PROTOCOL": self.headers.get("git-protocol") or "",
                }
                done = subprocess.run(
                    ["git", "http-backend"],
                    input=body,
                    env=environment,
                    capture_output=True,
                    check=True,
                )
                head, _, content = done.stdout.partition(b"\r\n\r\n")
                lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
                self.send_response(int(lines.pop("Status", "200").split()[0]))
                for name, value in lines.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = handle_any  # noqa: N815  the names of http.server

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.httpd.shutdown()
        self.httpd.server_close()
        self.thread.join(5)
