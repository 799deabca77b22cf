"""Keys that may be written already and do nothing yet: said aloud, never ignored in silence."""

from policies.schema.document import PolicyFile


def find_waiting(file: PolicyFile) -> list[str]:
    """One sentence for each setting of a file that this version does not act on, in its order."""
    found: list[str] = []
    for name, policy in file.policies.items():
        if policy.ttl is not None:
            found.append(f"policies.{name}.ttl has no effect yet; nothing is deleted by age")
    return found
