# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A model hub of the tests: answers for one repository as the real one does, from a directory."""

from __future__ import annotations

import hashlib
import json
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "a" * 40


class HubServer:
    """The hub; with no folder it takes requests and never answers them."""

    def __init__(self, repository: str, folder: pathlib.Path | None) -> None:
        self.requests: list[str] = []
        self.released = threading.Event()
        control = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                control.requests.append(f"{self.command} {self.path}")
                if folder is None:
                    control.released.wait(60)
                    self.close_connection = True
                    return
                path = self.path.split("?")[0]
                start = f"/{repository}/resolve/"
                if path == f"/api/models/{repository}":
                    files = [{"rfilename": file.name} for file in folder.iterdir()]
                    info = {"id": repository, "sha": COMMIT, "siblings": files}
                    self.send(json.dumps(info).encode(), "application/json")
                elif path.startswith(start) and (folder / path.split("/")[-1]).is_file():
                    content = (folder / path.split("/")[-1]).read_bytes()
                    self.send(content, "application/octet-stream")
                else:
                    self.send_response(404)
                    self.send_header("X-Error-Code", "EntryNotFound")
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def send(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
