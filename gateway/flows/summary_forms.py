"""How the frame of a summary is demanded: by a grammar, a schema, a tool, or in words alone."""

from __future__ import annotations

import logging

from gateway.backends.base import Backend
from gateway.prompts.summary import Form

log = logging.getLogger("foldgate.recorder")

SEEDED = frozenset({"llama_cpp", "scripted"})
"""The kinds of backends that take a grammar, and a seed."""

_SIMPLER: dict[Form, Form] = {
    "grammar": "object",
    "schema": "object",
    "object": "tool",
    "tool": "prose",
}
"""How else to demand the frame after a request was refused: other bytes, not the same again."""

_DEMANDS: dict[Form, str] = {
    "grammar": "response_format",
    "schema": "response_format",
    "object": "response_format",
    "tool": "tools",
}
"""The field of a request that demands the frame."""


class SummaryForms:
    """The forms in which backends take summary requests, as far as they had to be learned."""

    def __init__(self) -> None:
        self._learned: dict[str, Form] = {}

    def of(self, backend: Backend) -> Form:
        """How the frame is demanded of a backend; learned where it refused another way."""
        usual: Form = "grammar" if backend.kind in SEEDED else "schema"
        return self._learned.get(backend.name, usual)

    def learn(self, backend: Backend, form: Form) -> None:
        """Keep to the form in which a backend took a request, after it refused another."""
        if form != self.of(backend):
            log.warning("%s takes summary requests only as %s, not as usual", backend.name, form)
            self._learned[backend.name] = form


def fit_form(backend: Backend, form: Form) -> Form:
    """The form, or where the backend passes none of it on to its model, another: nothing would
    hold an answer to the frame then."""
    demand = _DEMANDS.get(form)
    if demand is None or demand not in backend.dropped_params({demand: {}}):
        return form
    return fit_form(backend, "prose" if form == "tool" else "tool")


def find_simpler(backend: Backend, form: Form) -> Form | None:
    """The form to try after a backend refused a request in this one; None where there is none."""
    simpler = _SIMPLER.get(form)
    if simpler == "tool" and backend.kind == "llama_cpp":
        return "prose"  # its tools are a grammar too, and ask for a template beside
    return simpler
