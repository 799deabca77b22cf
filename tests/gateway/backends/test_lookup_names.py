"""Names of lookups: this network is fine, the link alone is not."""

from __future__ import annotations

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.backends.lookup_names import OperatorNames


class Fixed(AbstractResolver):
    """Every name leads here."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.is_closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("address", ["127.0.0.1", "172.18.0.4", "93.184.216.34", "fd00::4", "::1"])
async def test_a_source_may_be_anywhere_it_was_put(address: str) -> None:
    found = await OperatorNames(Fixed(address)).resolve("crm", 80)
    assert [one["host"] for one in found] == [address]


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254"])
async def test_no_name_leads_to_the_link_alone(address: str) -> None:
    with pytest.raises(OSError, match="link"):
        await OperatorNames(Fixed("127.0.0.1", address)).resolve("crm", 80)


async def test_it_closes_what_it_asks() -> None:
    inner = Fixed()
    await OperatorNames(inner).close()
    assert inner.is_closed
