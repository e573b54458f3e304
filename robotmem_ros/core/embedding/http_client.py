# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The HTTP client for an embedding server, and the check of its address and key.

Addresses and keys that are refused are not shown: they may hold a secret.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re

import httpx

from robotmem_ros.core.errors import ConfigError, EmbeddingError

TIMEOUT = httpx.Timeout(10.0, connect=3.0)
LIMITS = httpx.Limits(max_connections=10, max_keepalive_connections=5)


def checked_url(text: str) -> tuple[str, bool]:
    """Return an address without an ending slash, and whether it is this computer's loopback.

    Raises
    ------
    ConfigError: it is not the plain address of a server.
    """
    refusal = ConfigError(
        "parameter ollama_url: the value is not allowed; it must be like http://localhost:11434, "
        "without user, password, query or fragment"
    )
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise refusal from None
    extras = url.userinfo or url.query or url.fragment
    if url.scheme not in ("http", "https") or not url.host or extras:
        raise refusal
    host = url.host.lower()
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost" or host.endswith(".localhost")
    return str(url).rstrip("/"), is_loopback


def checked_key_name(name: str) -> str:
    """Return the name of an environment variable, or "".

    Raises
    ------
    ConfigError: it is none; perhaps it is the key itself.
    """
    if name and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise ConfigError(
            "parameter embed_api_key_env: the value is not allowed; it must be the name of an "
            "environment variable in capital letters, not the key"
        )
    return name


def read_key(name: str) -> str:
    """Return the API key in an environment variable; "" without a name.

    Raises
    ------
    EmbeddingError: it is not set, or cannot be sent.
    """
    key = os.environ.get(name, "").strip() if name else ""
    if name and not (key and key.isascii() and key.isprintable()):
        problem = "holds what cannot be an API key" if key else "is not set"
        raise EmbeddingError(
            f"the environment variable {name} (parameter embed_api_key_env) {problem}"
        )
    return key


def new_client(key: str, is_loopback: bool) -> httpx.AsyncClient:
    """Return a client that sends the key, follows no redirect and checks certificates."""
    headers = {"Accept-Encoding": "identity"}  # what is small must not unpack to what is huge
    if key:
        headers["Authorization"] = f"Bearer {key}"
    # One line for every request is too much, and each names the URL.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return httpx.AsyncClient(
        headers=headers,
        timeout=TIMEOUT,
        limits=LIMITS,
        follow_redirects=False,
        verify=True,
        trust_env=not is_loopback,  # no proxy can reach this computer's loopback
    )
