"""Processes of this machine."""

from __future__ import annotations

import os


def is_running(pid: int) -> bool:
    """Whether there is a process of this number on this machine, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
