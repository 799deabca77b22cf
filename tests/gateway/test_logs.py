"""The log's two forms, and what never stands in it."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from gateway.logs import configure_logs
from gateway.trail import Trail, following

SECRET = "내 비밀은 🔑 sk-123"


@pytest.fixture
def untouched() -> Iterator[None]:
    """The process's own logging, as it was before."""
    root, ours = logging.getLogger(), logging.getLogger("foldgate")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.mark.usefixtures("untouched")
class TestLogs:
    def lines(self, out: io.StringIO) -> list[dict[str, object]]:
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def test_json_says_what_happened_where_and_for_whom(self) -> None:
        out = io.StringIO()
        configure_logs("json", "info", out)
        with following(Trail(request="req_1", conversation="conv_ü")):
            logging.getLogger("foldgate.turn").info("attempt %d ended", 1, extra={"ms": 12})
        logging.getLogger("foldgate.turn").debug("not heard")
        (line,) = self.lines(out)
        assert str(line.pop("time")).endswith("Z")
        assert line == {
            "level": "info",
            "logger": "foldgate.turn",
            "message": "attempt 1 ended",
            "request": "req_1",
            "conversation": "conv_ü",
            "ms": 12,
        }

    def test_text_says_the_same_on_one_line(self) -> None:
        out = io.StringIO()
        configure_logs("text", "debug", out)
        with following(Trail(job="chapter:7")):
            logging.getLogger("foldgate.upkeep").debug("a try", extra={"backend": "local"})
        assert out.getvalue().split(" ", 1)[1] == (
            "DEBUG foldgate.upkeep: a try [backend=local job=chapter:7]\n"
        )

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            ("mail to bob@example.com failed", "mail to *** failed"),
            ("携帯090-1234-5678に", "携帯***に"),
            ("card 4111 1111 1111 1111, DNI 12345678Z", "card ***, DNI ***"),
            ("with sk-abcdef123456 and Bearer abcdef123456", "with *** and ***"),
            ("http://user:secret@db.example/x", "http://***@db.example/x"),
            ("api_key=abcd1234", "api_key=***"),
            # What the log is there for stays.
            ("conv_0a1b2c3d4e5f60718293a4b5", "conv_0a1b2c3d4e5f60718293a4b5"),
            ("attempt 12 read 48000 tokens in 1500 ms", "attempt 12 read 48000 tokens in 1500 ms"),
            ("d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e"),
            ("http://127.0.0.1:8080 on 2026-12-01", "http://127.0.0.1:8080 on 2026-12-01"),
        ],
    )
    @pytest.mark.parametrize("logger", ["foldgate.turn", "sqlalchemy.pool"])
    def test_values_and_keys_are_masked_whoever_says_them(
        self, logger: str, said: str, told: str
    ) -> None:
        out = io.StringIO()
        configure_logs("json", "info", out)
        logging.getLogger(logger).warning("%s", said)
        (line,) = self.lines(out)
        assert line["message"] == told

    @pytest.mark.parametrize("form", ["json", "text"])
    def test_an_exception_is_told_without_its_words(self, form: str) -> None:
        out = io.StringIO()
        configure_logs("json" if form == "json" else "text", "info", out)
        try:
            try:
                raise KeyError(SECRET)
            except KeyError as error:
                raise ValueError(SECRET) from error
        except ValueError:
            logging.getLogger("foldgate.upkeep").exception("job chapter:7 failed")
        told = out.getvalue()
        assert "builtins.ValueError" in told
        assert "caused by builtins.KeyError" in told
        assert "test_an_exception_is_told" in told
        assert "sk-123" not in told

    def test_libraries_are_heard_from_warnings_on_and_in_one_line(self) -> None:
        out = io.StringIO()
        configure_logs("json", "debug", out)
        logging.getLogger("asyncio").info("unheard")
        logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: %s", SECRET)
        logging.getLogger("LiteLLM").error("sent %s", SECRET)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"Pydantic serializer warnings:\n {SECRET}", stacklevel=1)
        first, second = self.lines(out)
        assert first["message"] == "Task exception was never retrieved"
        assert "Pydantic serializer warnings:" in str(second["message"])
        assert "sk-123" not in out.getvalue()

    def test_to_configure_it_twice_says_everything_once(self) -> None:
        first, second = io.StringIO(), io.StringIO()
        configure_logs("text", "info", first)
        configure_logs("text", "info", second)
        logging.getLogger("foldgate.app").warning("once")
        assert (first.getvalue(), second.getvalue().count("once")) == ("", 1)
