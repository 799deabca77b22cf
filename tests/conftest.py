"""What holds for every test: reproducible properties, and no word to the outside."""

import ipaddress
import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# How long an example takes says more about the neighbours on this machine than about the code.
# Without the phase that explains a failure, which traces every line and takes minutes.
_STEADY: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [phase for phase in Phase if phase is not Phase.explain],
}

settings.register_profile("dev", **_STEADY)
settings.register_profile("ci", derandomize=True, print_blob=True, database=None, **_STEADY)
settings.register_profile("thorough", max_examples=2000, **_STEADY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


def _is_this_machine(host: object) -> bool:
    """Whether `host` (a name or an address as sockets take them) is this machine's own."""
    if host is None or host == "" or host == b"":
        return True
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _stay_on_this_machine(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that fails the test which reaches for another machine.

    The failure is no `Exception`, so that code under test which treats a broken connection as
    weather cannot swallow it.
    """
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        reached = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        reached = arguments[0]
    else:
        return
    if not _is_this_machine(reached):
        pytest.fail(f"a test reached for {reached!r} ({event}): tests stay on this machine")


def pytest_configure() -> None:
    """Put the hook up before the first test is collected; the interpreter keeps it to its end."""
    sys.addaudithook(_stay_on_this_machine)
