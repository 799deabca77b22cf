"""The policies of the demonstration: the shipped numbers, scaled to a window of 4,096 tokens."""

from __future__ import annotations

WINDOW = 4_096
"""Tokens of one slot: small, so that four windows are told within minutes (on two cores this model
reads some 330 and writes some 20 tokens/s)."""

SLOTS = 2
"""One for the conversation and one for its recorder, so that neither evicts the other's cache."""

MAX_TOKENS = 80
"""What the person asks of one reply at most."""

MODEL = "lighthouse"
POLICY = "small-fold"
BACKEND = "smollm2"

_FILE = """\
# Written by `foldgate demo`. The numbers of local-fold, which is made for 64k tokens, scaled to a
# slot of {window:,} tokens: this model takes about 3.7 characters of English to a token, so the
# ceiling is some 3,750 tokens, beside which system text, a reply and a margin fit. Between start
# and ceiling there is room for two turns: one that crosses the start, and one that folds.
version: 1

backends:
  {backend}:
    kind: llama_cpp
    url: {url}
    slots: shared

policies:
  {policy}:
    view: {{start: 10_000, ceiling: 13_800, headroom: 6_000, keep: 2_500}}
    chapters: {{split: 10_000, length: 300, stack: 800}}
    gist: {{length: 400}}
    # One draw, then an extract stands in; what three later rounds bring may still replace it.
    # On a busy machine a summary that takes longer than the timeout is given up for this round.
    summaries:
      backends: [{backend}]
      delay: 2s
      max_output: 140 tokens
      redraws: 0
      rounds: 1
      timeout: 45s
    recall: {{budget: 0}}

models:
  {model}:
    tiers: [{{backend: {backend}, policy: {policy}}}]
    private: true

...
"""


def write_policies(url: str) -> str:
    """The text of policies.yaml for a llama-server at `url` (its root, without /v1)."""
    return _FILE.format(url=url, window=WINDOW, backend=BACKEND, policy=POLICY, model=MODEL)
