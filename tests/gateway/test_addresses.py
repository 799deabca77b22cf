"""Which addresses of clients are asked for."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest

from gateway import addresses
from gateway.addresses import UnfitAddress, check_urls, host_of, is_public

PRIVATE = [
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:8080/slots",
    "http://[::ffff:127.0.0.1]/",
    "http://[::1]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://10.0.0.5/x.png",
    "http://192.168.1.1/",
    "http://172.16.0.1./",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://user@10.0.0.5/x.png",
    "http://user@example.com/x.png",
    "http://localhost/",
    "http://LOCALHOST.:80/",
    "http://printer.local/",
    "http://metadata.google.internal/",
    "file:///etc/passwd",
    "ftp://example.com/x",
    "gopher://example.com/",
    "http:///x",
    "http://[::1",
    "http://example.com:99999/",
    "http://exa%6dple.com/",
    "http://a\\@b/",
    "//example.com/x",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_what_leads_into_this_network_is_unfit_by_its_form(url: str) -> None:
    with pytest.raises(UnfitAddress):
        host_of(url)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.com/a.png?x=1", "example.com"),
        ("http://8.8.8.8/x", "8.8.8.8"),
        ("https://[2606:4700::1111]:8443/x", "2606:4700::1111"),
        (" https://images.example.org. ", "images.example.org"),
        ("https://localhost.example.org/", "localhost.example.org"),
    ],
)
def test_what_is_public_by_its_form(url: str, host: str) -> None:
    assert host_of(url) == host


async def found(host: str) -> list[str]:
    """A resolver: rebind.example leads here and elsewhere, nowhere.example has no address."""
    if host == "nowhere.example":
        raise OSError("no such host")
    if host == "slow.example":
        await asyncio.Event().wait()
    known = {"rebind.example": ["93.184.216.34", "127.0.0.1"], "link.example": ["fe80::1%eth0"]}
    return known.get(host, ["93.184.216.34"])


@pytest.mark.parametrize("host", ["rebind.example", "link.example"])
async def test_a_name_that_leads_into_this_network_is_unfit(host: str) -> None:
    with pytest.raises(UnfitAddress, match="in this network"):
        await check_urls(["https://fine.example/", f"https://{host}/x.png"], found)


async def test_public_names_and_unknown_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "RESOLVE_SECONDS", 0.01)
    names = ["fine.example", "nowhere.example", "slow.example"]
    await check_urls([f"https://{name}/" for name in names], found)
    await check_urls(["gs://bucket/clip.mp4", "s3://bucket/doc.pdf"], found)


async def test_hosts_have_a_bound() -> None:
    with pytest.raises(UnfitAddress, match="64"):
        await check_urls([f"https://h{number}.example/" for number in range(65)], found)


async def test_the_system_resolves() -> None:
    assert "127.0.0.1" in await addresses.resolve("127.0.0.1")


def test_a_wrapped_address_is_what_it_wraps() -> None:
    assert is_public(ipaddress.ip_address("::ffff:8.8.8.8"))
    assert is_public(ipaddress.ip_address("64:ff9b::808:808"))
    assert not is_public(ipaddress.ip_address("2001:0:4136:e378:8000:63bf:3fff:fdd2"))
