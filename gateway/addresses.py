"""Addresses that come from clients: which may be asked for, and which point into this network.

A name is looked up and every address behind it counts: one that is private, of this machine, of the
link (clouds keep their metadata there) or of no single host makes the whole name unfit. Numbers are
read in every form that a resolver takes them in: 127.1, 0x7f000001, 2130706433.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str], Awaitable[list[str]]]
"""The addresses of a host name as text; raises OSError where it has none."""

RESOLVE_SECONDS = 3.0
MOST_HOSTS = 64
"""Different hosts of one request."""

_OWN_NAMES = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home.arpa")
_STORES = ("gs://", "s3://")
"""A provider's own stores, which only it reads."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


class UnfitAddress(ValueError):
    """An address that is not asked for; the message says why, without repeating it."""


def is_public(address: Address) -> bool:
    """Whether an address is one host of the public internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast


def host_of(url: str) -> str:
    """The host that a client's address names, in lower case. Raises UnfitAddress where it is no
    plain http or https address, or names this network by its form alone."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UnfitAddress("it is no address") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise UnfitAddress("only data:, http and https addresses are taken")
    if parts.username is not None or parts.password is not None:
        raise UnfitAddress("it names a user before its host")
    if not host or "%" in host or "\\" in parts.netloc:
        raise UnfitAddress("it names no host")
    host = host.rstrip(".").lower()
    if any(host == name or host.endswith(f".{name}") for name in _OWN_NAMES):
        raise UnfitAddress("its host is in this network")
    number = _read_number(host)
    if number is not None and not is_public(number):
        raise UnfitAddress("its host is in this network")
    return host


def _read_number(host: str) -> Address | None:
    """The address that a host is written as, in any form that the system's resolver takes."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


async def check_urls(urls: Iterable[str], resolve: Resolve) -> None:
    """Raises UnfitAddress for the first that points into this network, by its form or by what its
    host is resolved to. A name that has no address here may have one for whoever fetches it."""
    hosts = {host_of(url) for url in urls if not url.startswith(_STORES)}
    if len(hosts) > MOST_HOSTS:
        raise UnfitAddress(f"more than {MOST_HOSTS} different hosts are named")
    for found in await asyncio.gather(*(_look_up(host, resolve) for host in sorted(hosts))):
        if not all(is_public(address) for address in found):
            raise UnfitAddress("its host is in this network")


async def _look_up(host: str, resolve: Resolve) -> list[Address]:
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await resolve(host)
    except (OSError, UnicodeError):  # TimeoutError is one
        return []
    return [ipaddress.ip_address(address.partition("%")[0]) for address in found]


async def resolve(host: str) -> list[str]:
    """As the system resolves it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
