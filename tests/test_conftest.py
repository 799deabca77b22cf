"""The guards that the suite itself stands on."""

import socket

import pytest

OUTSIDE = ["93.184.216.34", "10.0.0.1", "192.168.1.1", "8.8.8.8", "2606:2800:220:1::1"]


@pytest.mark.parametrize("host", OUTSIDE)
def test_a_connection_off_this_machine_fails_the_test(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.socket(family, socket.SOCK_STREAM) as reaching,
        pytest.raises(pytest.fail.Exception, match="tests stay on this machine"),
    ):
        reaching.connect((host, 80))


@pytest.mark.parametrize("name", ["example.invalid", "pypi.org", "10.0.0.1"])
def test_a_name_lookup_off_this_machine_fails_the_test(name: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="tests stay on this machine"):
        socket.getaddrinfo(name, 80)


def test_the_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as reaching:
            answering, _ = listening.accept()
            with answering:
                answering.sendall(b"ok")
                assert reaching.recv(2) == b"ok"
    assert socket.getaddrinfo("localhost", 80)
