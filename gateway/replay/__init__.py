"""Recorded conversations, played through the real program on a virtual clock.

recordings   files -> turns
stage        the virtual event loop, clock, bells, and the program on it
player       turns -> the program, one after another
measure      what each prompt cost: re-read characters, lost messages, cold turns
plot         the measurements as a picture
"""

from gateway.replay.measure import Totals, TurnRecord
from gateway.replay.player import Options, play
from gateway.replay.recordings import Recording, RecordingError, read_recordings

__all__ = [
    "Options",
    "Recording",
    "RecordingError",
    "Totals",
    "TurnRecord",
    "play",
    "read_recordings",
]
