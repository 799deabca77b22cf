"""Every error as OpenAI's envelope, whoever raised it."""

from __future__ import annotations

import logging
import math

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.api.watch import note_code
from gateway.errors import BadRequest, GatewayError
from gateway.logs import describe_exception
from gateway.wire.json_text import dump_bytes

log = logging.getLogger("foldgate.api")

# Told without a moment by the upstream. Clients honour Retry-After, and hammer without it.
_PASSING = frozenset({"upstream_unavailable", "upstream_loading", "upstream_overloaded"})
_USUAL_WAIT = 5.0

_CODES = {404: "not_found", 405: "method_not_allowed"}
_MESSAGES = {
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
}


class ErrorResponse(Response):
    """An error's envelope, which says its code to whoever counts."""

    def __init__(self, error: GatewayError, headers: dict[str, str]) -> None:
        super().__init__(
            dump_bytes(error.body()),
            status_code=error.status,
            headers=headers,
            media_type="application/json",
        )
        self._code = error.code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note_code(scope, self._code)
        await super().__call__(scope, receive, send)


def error_response(error: GatewayError) -> Response:
    """The envelope with the error's status; Retry-After in whole seconds where it names a wait, and
    where it is one that passes by itself."""
    headers = {}
    wait = error.retry_after
    if wait is None and error.code in _PASSING:
        wait = _USUAL_WAIT
    if wait is not None:
        headers["retry-after"] = str(max(1, math.ceil(wait)))
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return ErrorResponse(error, headers)


def unexpected(request_id: str) -> GatewayError:
    """What a client is told of a fault of ours: nothing but the number to look for in the log."""
    return GatewayError(
        f"Something went wrong inside the gateway (request {request_id}).", code="internal_error"
    )


def log_unexpected(request_id: str, error: BaseException) -> None:
    """Where it happened and what kinds of exception, not their words: those may quote people."""
    log.error("request %s failed: %s", request_id, describe_exception(error))


def add_error_handlers(app: FastAPI) -> None:
    """Convert GatewayError and what the framework itself raises."""
    app.add_exception_handler(GatewayError, _on_gateway_error)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_validation)


async def _on_gateway_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    return error_response(error)


async def _on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    told = GatewayError(
        _MESSAGES.get(status, str(error.detail)),
        status=status,
        type="invalid_request_error" if status < 500 else "server_error",
        code=_CODES.get(status),
    )
    response = error_response(told)
    response.headers.update(error.headers or {})
    return response


async def _on_validation(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    return error_response(BadRequest(f"`{where}`: {first['msg']}.", param=where or None))
