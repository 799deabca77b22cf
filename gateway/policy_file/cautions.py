"""What is no fault of a policies file and still good to know before it is used."""

from __future__ import annotations

from policies.budget import find_narrowed
from policies.schema import PolicyFile, find_waiting


def find_cautions(file: PolicyFile) -> list[str]:
    """A sentence for each setting that does nothing yet, or less than it says."""
    return [
        *find_waiting(file),
        *(
            f"policies.{name}.{sentence}"
            for name, policy in file.policies.items()
            for sentence in find_narrowed(policy)
        ),
    ]
