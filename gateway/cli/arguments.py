"""What people type that is text: whole letters, or an error in words before any work is done.

A command line is bytes. What of it is not UTF-8 arrives as half letters (PEP 383), which neither a
database nor a model can hold; only names of files may be so.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.lines import speakable
from gateway.errors import NotFound
from policies.messages import whole_letters
from policies.schema import parse_duration

LONGEST_DAYS = 36_500
"""A hundred years: what is to be kept for longer has no date that anybody will see."""

_DAY_SECONDS = 86_400


class Text(click.ParamType[str]):
    """Text in whole letters. Anything else is wrong use (2)."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text != whole_letters(text):
            self.fail(f"'{speakable(text)}' is not UTF-8.", param, ctx)
        return text


class Called(click.ParamType[str]):
    """The id or name of something that is stored. Nothing is called by half letters: NotFound."""

    name = "text"

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text != whole_letters(text):
            raise NotFound(f"there is no {self._noun} {speakable(text)}")
        return text


class DatabasePath(click.Path):
    """Where a database or its copy stands: SQLite opens no file whose name is not UTF-8."""

    def __init__(self, *, dir_okay: bool = True) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        name = Text().convert(os.fspath(value), param, ctx)
        return Path(os.fsdecode(super().convert(name, param, ctx)))


class Duration(click.ParamType[int]):
    """A duration as policies.yaml writes it, of a hundred years at most, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            seconds = parse_duration(value)
        except ValueError:
            seconds = 0.0
        if not seconds or seconds <= 0:
            self.fail(f"{value!r} is no duration such as 30d or 12h.", param, ctx)
        if seconds > LONGEST_DAYS * _DAY_SECONDS:
            self.fail(
                f"{value!r} is too long; {LONGEST_DAYS}d (100 years) is the most.", param, ctx
            )
        return round(seconds * 1_000)


def parse_moment(text: str) -> int:
    """A date and time (ISO 8601; UTC where no zone is given) as milliseconds since 1970, 0 for what
    was before. ValueError where it is none, or none of the years 1 to 9999."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("no year of the calendar") from None
    return max(0, int(moment.timestamp() * 1000))
