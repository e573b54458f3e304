# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A small server on loopback that speaks Ollama's API, or OpenAI's, and can fail in every way.

Its vectors are bags of hashed words: texts that share words are near each other.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

POISON = "POISON"


def vector(text: str, dim: int) -> list[float]:
    found = [1e-3] * dim
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        found[int.from_bytes(digest, "little") % dim] += 1.0
    length = math.sqrt(sum(x * x for x in found))
    return [x / length for x in found]


class OllamaServer:
    """The server, in threads of this process.

    Attributes
    ----------
    fault: what it does wrong; see Handler.
    requests: path and number of texts of every request so far.
    headers: the headers of the last request.
    texts: the texts of all embedding requests.
    """

    def __init__(self, dim: int = 768, model: str = "nomic-embed-text", port: int = 0) -> None:
        self.dim, self.model = dim, model
        self.digest = "0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f"
        self.fault = ""
        self.delay = 0.0
        self.requests: list[tuple[str, int]] = []
        self.texts: list[str] = []
        self.headers: dict[str, str] = {}
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.released = threading.Event()  # lets hanging requests end
        handler = type("Bound", (Handler,), {"control": self})
        self.server = Server(("127.0.0.1", port), handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # clients that go away are part of the tests


class Handler(BaseHTTPRequestHandler):
    control: OllamaServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        control = self.control
        control.requests.append((self.path, 0))
        control.headers = dict(self.headers)
        if self.everywhere(control.fault):
            return
        if self.path == "/api/version":
            self.answer({"version": "0.9.5"})
        elif self.path == "/api/tags":
            name = "llama3:latest" if control.fault == "model_missing" else control.model
            name = name if ":" in name else f"{name}:latest"
            self.answer({"models": [{"name": name, "model": name, "digest": control.digest}]})
        else:
            self.answer_bytes(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        control = self.control
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        with control.lock:
            control.requests.append((self.path, len(texts)))
            control.texts += texts
            control.headers = dict(self.headers)
            control.at_once += 1
            control.most_at_once = max(control.most_at_once, control.at_once)
        try:
            time.sleep(control.delay)
            self.embed(body, texts)
        finally:
            with control.lock:
                control.at_once -= 1

    def everywhere(self, fault: str) -> bool:
        """Answer wrongly whatever was asked; return whether that was done."""
        if fault == "not_ollama":
            self.answer_bytes(200, b"<html>It works!</html>", "text/html")
        elif fault == "not_found":
            self.answer_bytes(404, b"404 page not found", "text/plain")
        elif fault == "redirect":
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:9/stolen")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif fault == "hang":
            self.control.released.wait(60)
            self.close_connection = True
        elif fault == "unauthorized":
            said = "Incorrect API key provided: " + self.headers.get("Authorization", "")
            self.answer({"error": {"message": said}}, 401)
        else:
            return False
        return True

    def embed(self, body: dict[str, object], texts: list[str]) -> None:
        control, fault = self.control, self.control.fault
        if self.everywhere(fault):
            return
        if fault == "500":
            self.answer({"error": "do embedding request: EOF"}, 500)
            return
        if fault == "memory":
            self.answer({"error": "model requires more system memory (5.6 GiB)"}, 500)
            return
        if fault == "echo_key":
            self.answer({"error": "bad header " + self.headers.get("Authorization", "")}, 500)
            return
        if fault == "invalid":
            self.answer_bytes(200, b'{"embeddings": [[0.1, ', "application/json")
            return
        if fault == "huge":
            self.huge()
            return
        if fault == "reset":
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            self.connection.close()
            self.close_connection = True
            return
        if fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"embeddings": [[')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault == "too_long" and any(len(text) > 2000 for text in texts):
            self.answer({"error": "the input length exceeds the context length"}, 400)
            return
        if fault == "poison" and any(POISON in text for text in texts):
            self.answer({"error": "failed to encode response: json: unsupported value: NaN"}, 500)
            return
        dim = control.dim // 2 if fault == "dimension" else control.dim
        vectors: list[object] = [vector(text, dim) for text in texts]
        if fault == "nan":
            vectors = [[float("nan")] * dim for _ in texts]
        if fault == "nan_one":
            vectors = [
                [float("nan"), *made[1:]] if POISON in text else made  # type: ignore[index]
                for text, made in zip(texts, vectors, strict=True)
            ]
        if fault == "zero":
            vectors = [[0.0] * dim for _ in texts]
        if fault == "strings":
            vectors = [["0.5"] * dim for _ in texts]
        if fault == "infinite":
            vectors = [[1e300] * dim for _ in texts]
        if fault == "fewer" and len(texts) > 1:
            vectors = vectors[:-1]
        if self.path == "/api/embed":
            self.answer({"model": body["model"], "embeddings": vectors, "total_duration": 1})
        elif self.path == "/v1/embeddings":
            data = [
                {"object": "embedding", "index": index, "embedding": made}
                for index, made in enumerate(vectors)
            ]
            if fault == "order":
                data.reverse()
            if fault == "index":
                data = [{**item, "index": 0} for item in data]
            self.answer({"object": "list", "model": control.model, "data": data})
        else:
            self.answer_bytes(404, b"404 page not found", "text/plain")

    def huge(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        block = b" " * 65536
        try:
            for _ in range(16384):  # 1 GiB
                self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
        except OSError:
            pass  # the client has heard enough
        self.close_connection = True

    def answer(self, value: object, status: int = 200) -> None:
        self.answer_bytes(status, json.dumps(value).encode(), "application/json")

    def answer_bytes(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
