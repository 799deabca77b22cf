"""Recorded conversations, played through the real program on a virtual clock.

recordings   files -> turns
stage        the virtual event loop, clock, bells, and the program on it
cast         which backend plays which policy
player       turns -> the program, one after another
switches     moves between policies, and what each costs
measure      what each prompt cost: re-read characters, lost messages, cold turns
plot         the measurements as a picture
"""

from gateway.replay.measure import Totals, TurnRecord
from gateway.replay.player import Options, play
from gateway.replay.recordings import Recording, RecordingError, read_recordings
from gateway.replay.switches import Switch

__all__ = [
    "Options",
    "Recording",
    "RecordingError",
    "Switch",
    "Totals",
    "TurnRecord",
    "play",
    "read_recordings",
]
