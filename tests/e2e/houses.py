"""One gateway over each kind of backend, so that one suite can run over both.

Both windows are small, and their summaries so late that no background work stands beside a test.
"""

from __future__ import annotations

from tests.e2e.conftest import WINDOW

KEYS = {"ada": "key-of-ada-0123456789", "ben": "key-of-ben-0123456789"}
ENVIRON = {"FOLDGATE_KEYS": ",".join(f"{name}={key}" for name, key in KEYS.items())}

_POLICIES = """
version: 1
backends:
  local: {{{backend}}}
policies:
  small:
    view: {{start: 4000, ceiling: 5000, headroom: 1500, keep: 600}}
    chapters: {{split: 2000, length: 100, stack: 600}}
    gist: {{length: 150}}
    summaries: {{delay: 1h}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}

...
"""


def llama_policies(url: str) -> str:
    """policies.yaml for a llama-server at `url`."""
    return _POLICIES.format(backend=f'kind: llama_cpp, url: "{url}"')


def scripted_policies(window: int | None = WINDOW) -> str:
    """policies.yaml for the backend without a model; window in tokens, None: without end."""
    size = "null" if window is None else f"{window} tokens"
    return _POLICIES.format(backend=f"kind: scripted, latency: 0s, window: {size}")
