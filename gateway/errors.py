"""Every error that Foldgate answers with, as one tree.

GatewayError                what a client may be told: message, status, type, code, param
├─ BadRequest      400      the request cannot be served as it is
│  └─ ContextLengthExceeded  no tier's window holds the newest message
├─ Unauthorized    401      no key, or an unknown one
├─ Forbidden       403      what is private would leave this machine
├─ NotFound        404      unknown, or another owner's: the two look alike
├─ Conflict        409      the state changed under the request
├─ PayloadTooLarge 413      more bytes than the server takes
├─ Busy            429/503  try again later; carries retry_after in seconds
├─ StorageFailed   503      the database cannot be read or written now (full, locked, read-only)
└─ UpstreamFailed  502/504… a backend failed; its tag was decided in backends/faults
ConfigurationError          the program cannot start as it is configured (never a response)
"""

from __future__ import annotations

from typing import Any


class GatewayError(Exception):
    """An error with the words and the status a client is told."""

    status = 500
    type = "server_error"
    code: str | None = None

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status or self.status
        self.type = type or self.type
        self.code = code or self.code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """OpenAI's error envelope."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


class BadRequest(GatewayError):
    status = 400
    type = "invalid_request_error"


class ContextLengthExceeded(BadRequest):
    code = "context_length_exceeded"


class Unauthorized(GatewayError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(GatewayError):
    status = 403
    type = "invalid_request_error"
    code = "forbidden"


class NotFound(GatewayError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"


class Conflict(GatewayError):
    status = 409
    type = "invalid_request_error"
    code = "conflict"


class PayloadTooLarge(GatewayError):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class Busy(GatewayError):
    status = 503
    type = "overloaded_error"
    code = "overloaded"


class StorageFailed(GatewayError):
    status = 503
    code = "storage_unavailable"


class UpstreamFailed(GatewayError):
    status = 502
    type = "upstream_error"
    code = "upstream_failed"


class ConfigurationError(Exception):
    """The program cannot start; the message says what to change."""
