"""Reading policies.yaml: strict YAML with places, ``${VAR}``, validation, typed problems."""

from gateway.policy_file.cautions import find_cautions, tell_full_room
from gateway.policy_file.documents import PolicyDocument
from gateway.policy_file.loading import LoadedPolicies, load_policies, parse_policies
from gateway.policy_file.problems import PolicyFileError, Problem

__all__ = [
    "LoadedPolicies",
    "PolicyDocument",
    "PolicyFileError",
    "Problem",
    "find_cautions",
    "load_policies",
    "parse_policies",
    "tell_full_room",
]
