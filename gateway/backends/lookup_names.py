"""How the names of lookups are resolved: what is resolved is what is connected to."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver


class OperatorNames(AbstractResolver):
    """Names that the operator wrote into policies.yaml. They may be of this network, which is where
    a CRM stands; not of the link alone, where clouds keep the keys of their machines: no source of
    notes is there, and a name that leads there was turned by somebody else."""

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """As AbstractResolver.resolve. Raises OSError where an address is of the link alone."""
        found = await self._inner.resolve(host, port, family)
        for one in found:
            address = ipaddress.ip_address(one["host"].partition("%")[0])
            inner = getattr(address, "ipv4_mapped", None) or address
            if inner.is_link_local or inner.is_multicast:
                raise OSError("the name leads to an address of the link alone")
        return found

    async def close(self) -> None:
        await self._inner.close()
