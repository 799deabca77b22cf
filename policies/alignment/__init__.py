"""Where a history that its client does not tell word for word stands in the transcript.

Clients trim the head, put notes between messages, join turns of one role, prefix names and put
retrieved text around the newest message. The alignment is anchored on a reply that the gateway
gave and walks from there to both ends.

An insertion between two messages that are known to follow each other is the client's own. A change
is taken as an edit, until the client takes it back: what it takes back was its own (`Lore`), and
is known from then on. What cannot be told is not aligned (None), and the caller adds all of it.
"""

from policies.alignment.drawing import align
from policies.alignment.values import (
    Alignment,
    Around,
    Insertion,
    Lore,
    Piece,
    Spoken,
    Window,
)

__all__ = ["Alignment", "Around", "Insertion", "Lore", "Piece", "Spoken", "Window", "align"]
