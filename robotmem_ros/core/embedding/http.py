# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Embedding by a server: Ollama, or any that speaks the embeddings API of OpenAI."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding import http_client, prefixes
from robotmem_ros.core.embedding.backend import Backend, RefusedError, TooSlowError, one_line
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.http_client import (
    checked_key_name,
    checked_url,
    new_client,
    read_key,
)
from robotmem_ros.core.errors import EmbeddingError

_LOG = logging.getLogger(__name__)

MAX_RESPONSE = 16 * 1024 * 1024
"""Bytes read of one answer: three times what 32 vectors of length 8192 take as JSON."""

_WAITS = (1.0, 2.0)  # seconds before the second and the third try
_BUDGET = 30.0  # seconds for all tries of a request

_AGAIN = {408, 429}  # and every 5xx: worth another try
_REFUSED = {400, 413, 422}  # the server works, but does not take these texts


class HttpEmbedder(Backend):
    """The ollama backend, with both of its APIs.

    Raises
    ------
    ConfigError: ollama_url or embed_api_key_env cannot be used.
    """

    batches_at_once = 4

    def __init__(self, config: Config, cooldown: Cooldown) -> None:
        super().__init__(
            model=config.ollama_model,
            dim=config.ollama_dim,
            dim_setting="ollama_dim",
            prefixes=prefixes.chosen(
                config.ollama_model, config.embed_query_prefix, config.embed_passage_prefix
            ),
            cooldown=cooldown,
            starting=f"the server at {config.ollama_url} is being asked",
        )
        self._url, self._is_loopback = checked_url(config.ollama_url)
        self._is_ollama = config.embed_api == "ollama"
        if not self._is_ollama:
            self._url = self._url.removesuffix("/v1")
        self._key_name = checked_key_name(config.embed_api_key_env)
        self._key = ""
        if self._key_name and not self._is_loopback and self._url.startswith("http:"):
            _LOG.warning("the API key goes to %s without encryption; use https", self._url)
        self._client: httpx.AsyncClient | None = None
        self._client_lock = threading.Lock()

    async def close(self) -> None:
        """Close all connections."""
        await super().close()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _prepare(self) -> str:
        if not self._is_ollama:
            # Who answers is the model that counts, whatever it was asked for by.
            body = {"model": self.model, "input": ["ping"]}
            answer = await self._request("POST", "/v1/embeddings", body)
            return one_line(answer.get("model", ""), 100)
        answer = await self._request("GET", "/api/version")
        if "version" not in answer:
            raise self._not_ollama()
        models = (await self._request("GET", "/api/tags")).get("models")
        names = {self.model, f"{self.model}:latest"}
        for model in models if isinstance(models, list) else []:
            if isinstance(model, dict) and names & {model.get("name"), model.get("model")}:
                return str(model.get("digest", ""))[:12]
        raise self._no_model()

    async def _embed(self, texts: Sequence[str], *, query: bool, tries: int) -> Sequence[object]:
        body = {"model": self.model, "input": list(texts)}
        if self._is_ollama:
            answer = await self._request("POST", "/api/embed", body, tries)
            vectors = answer.get("embeddings")
            if not isinstance(vectors, list):
                raise self._error(EmbeddingError, "answered without embeddings")
            return vectors
        answer = await self._request("POST", "/v1/embeddings", body, tries)
        model = one_line(answer.get("model", ""), 100)
        if self._origin is not None and model != self._origin:
            raise self._error(
                EmbeddingError,
                f"now serves the model {model}, not {self._origin}; its vectors are not used "
                "before the next check",
            )
        return self._in_order(answer.get("data"), len(texts))

    def _in_order(self, data: object, count: int) -> list[object]:
        """Return the vectors of an answer in the order of the texts, by their index."""
        vectors: list[object] = [None] * count
        seen = set()
        for item in data if isinstance(data, list) else []:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is int and 0 <= index < count:
                vectors[index] = item.get("embedding")
                seen.add(index)
        if len(seen) != count or not isinstance(data, list) or len(data) != count:
            found = len(data) if isinstance(data, list) else 0
            raise self._error(
                EmbeddingError,
                f"answered with {found} vectors for {count} texts, or with a wrong index",
            )
        return vectors

    async def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, tries: int = 1
    ) -> dict[str, Any]:
        """Send a request, again if that may help, within _BUDGET; return the answer.

        Raises
        ------
        EmbeddingError: there is no answer, or not a good one.
        """
        deadline = time.monotonic() + _BUDGET
        for wait in (*_WAITS[: tries - 1], None):
            try:
                return await asyncio.wait_for(
                    self._send(method, path, body), deadline - time.monotonic()
                )
            except asyncio.TimeoutError:
                raise self._error(TooSlowError, f"took over {_BUDGET:g} s") from None
            except _AgainError as error:
                if wait is None or time.monotonic() + wait >= deadline:
                    raise error.cause from None
                await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Send a request once.

        Raises
        ------
        _AgainError: another try may help.
        EmbeddingError: it does not.
        """
        client = self._open()
        content = bytearray()
        try:
            async with client.stream(method, self._url + path, json=body) as response:
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > MAX_RESPONSE:
                        mebibytes = MAX_RESPONSE >> 20
                        raise self._error(EmbeddingError, f"answered with over {mebibytes} MiB")
        except httpx.ConnectTimeout:
            text = f"cannot be reached within {http_client.TIMEOUT.connect:g} s"
            raise _AgainError(self._error(TooSlowError, text)) from None
        except httpx.TimeoutException:
            text = f"did not answer within {http_client.TIMEOUT.read:g} s"
            raise _AgainError(self._error(TooSlowError, text)) from None
        except httpx.ConnectError as error:
            text = f"cannot be reached ({one_line(error)}); is the server running?"
            raise _AgainError(self._error(EmbeddingError, text)) from None
        except httpx.HTTPError as error:
            text = f"gave no proper answer ({one_line(error)}); is it the embedding server?"
            raise _AgainError(self._error(EmbeddingError, text)) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise self._error(RefusedError, f"cannot be asked ({one_line(error)})") from None
        if response.status_code != 200:
            raise self._refusal(response.status_code, _said(content))
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._error(
                EmbeddingError,
                "answered with something that is not a JSON object; is it the embedding server? "
                "Check ollama_url",
            )
        return answer

    def _refusal(self, status: int, said: str) -> Exception:
        """Return the error for an answer that is not 200."""
        if 300 <= status < 400:
            return self._error(
                EmbeddingError,
                "redirects to elsewhere, which is not followed; set ollama_url to the right "
                "address",
            )
        if status in (401, 403):
            # What it says may quote a part of the key.
            return self._error(
                EmbeddingError, f"refuses the API key (status {status}); {self._hint}"
            )
        if status == 404 and self._is_ollama:
            return self._no_model() if "model" in said else self._not_ollama()
        text = f"answered with status {status}{said}"
        if status == 404:
            return self._error(EmbeddingError, f"{text}; check ollama_url and ollama_model")
        if status in _REFUSED:
            return self._error(RefusedError, text)
        if "memory" in said.lower():
            text += "; the model may be too big for the memory of that computer"
        error = self._error(EmbeddingError, text)
        return _AgainError(error) if status in _AGAIN or status >= 500 else error

    def _no_model(self) -> EmbeddingError:
        return self._error(
            EmbeddingError, f"has no model {self.model}; run: ollama pull {self.model}"
        )

    def _not_ollama(self) -> EmbeddingError:
        return self._error(
            EmbeddingError,
            "is not Ollama; another program may hold its port. Check ollama_url and embed_api",
        )

    def _error(self, kind: type[EmbeddingError], what: str) -> EmbeddingError:
        """Return an error that says what the server did, without the key."""
        text = f"the server at {self._url} {what}"
        return kind(text.replace(self._key, "***") if self._key else text)

    @property
    def _hint(self) -> str:
        if not self._key_name:
            return "name the environment variable that holds the key in embed_api_key_env"
        return f"check the environment variable {self._key_name} (parameter embed_api_key_env)"

    def _open(self) -> httpx.AsyncClient:
        """Return the client, made at first use."""
        if self._client is None:
            with self._client_lock:
                if self._closed:
                    raise EmbeddingError("the backend is closed")
                if self._client is None:
                    self._key = read_key(self._key_name)
                    self._client = new_client(self._key, self._is_loopback)
        return self._client


class _AgainError(Exception):
    """A request that failed in a way that may pass."""

    def __init__(self, cause: EmbeddingError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _said(content: bytes | bytearray) -> str:
    """Return the error message of an answer, to be put behind the status."""
    try:
        answer = json.loads(content[:10_000])
    except (ValueError, RecursionError):
        return ""
    error = answer.get("error", "") if isinstance(answer, dict) else ""
    if isinstance(error, dict):
        error = error.get("message", "")
    return f": {one_line(error)}" if isinstance(error, str) and error else ""
