"""What policies.yaml may say: frozen, strict models, and the rules between its parts."""

from policies.schema.backends import (
    Backend,
    Circuit,
    LiteLLMBackend,
    LlamaCppBackend,
    ScriptedBackend,
    Timeouts,
)
from policies.schema.document import Attempts, Model, PolicyFile, Tier, find_faults
from policies.schema.parts import FAULTS, Fault, KeyPath, Part
from policies.schema.policy import Chapters, Gist, Policy, Recall, Summaries, View
from policies.schema.quantities import (
    FROM_FILE,
    Size,
    Unit,
    parse_duration,
    parse_size,
    spell_duration,
    spell_size,
    suggest,
)
from policies.schema.rules import (
    DAYS,
    Extent,
    Rule,
    When,
    content_tiers,
    named_headers,
    parse_hours,
    spell_hours,
)
from policies.schema.waiting import find_waiting

__all__ = [
    "DAYS",
    "FAULTS",
    "FROM_FILE",
    "Attempts",
    "Backend",
    "Chapters",
    "Circuit",
    "Extent",
    "Fault",
    "Gist",
    "KeyPath",
    "LiteLLMBackend",
    "LlamaCppBackend",
    "Model",
    "Part",
    "Policy",
    "PolicyFile",
    "Recall",
    "Rule",
    "ScriptedBackend",
    "Size",
    "Summaries",
    "Tier",
    "Timeouts",
    "Unit",
    "View",
    "When",
    "content_tiers",
    "find_faults",
    "find_waiting",
    "named_headers",
    "parse_duration",
    "parse_hours",
    "parse_size",
    "spell_duration",
    "spell_hours",
    "spell_size",
    "suggest",
]
