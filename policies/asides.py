"""What clients write under a person's name: fillers in front of a chat, nudges to go on.

Clients whose models must begin with a user, or end with one, put these in as user messages. They
are told by their form: brackets around a whole message that begins as theirs do, in six languages.
"""

import re

_FILLER = re.compile(
    r"\[\s*(?:(?:start|begin) (?:a |the )?(?:new )?(?:group )?chat|new (?:group )?chat"
    r"|(?:iniciar?|comenzar|empezar) (?:un )?(?:nuevo )?chat|nuevo chat"
    r"|(?:начать|начните) (?:новый )?чат|новый чат"
    r"|新しいチャット|チャットを?(?:開始|始め)"
    r"|(?:开始|開始)(?:新的?)?(?:聊天|对话|對話)|新(?:聊天|对话|對話)"
    r"|새(?:로운)? ?(?:채팅|대화)|(?:채팅|대화) 시작)[^\]]{0,200}\]",
    re.IGNORECASE,
)
_NUDGE = re.compile(
    r"\[\s*(?:continue (?:writing )?(?:from )?(?:where you (?:left off|stopped)"
    r"|(?:your|the|this) (?:(?:last|latest|previous|following|preceding|above) )?"
    r"(?:message|reply|response|output|post)\b)"
    r"|contin[uú]a (?:escribiendo )?(?:con )?(?:tu|el|la|este|esta) "
    r"(?:[uú]ltim[oa] |anterior )?(?:mensaje|respuesta)\b"
    r"|продолж(?:и|ай|ите|айте) (?:писать )?(?:(?:сво\w+|последн\w+|предыдущ\w+|эт\w+) )*"
    r"(?:сообщени|ответ|реплик)"
    r"|(?:最後|前|直前)の(?:メッセージ|発言|返信)(?:の続き|を続け)"
    r"|(?:请|請)?(?:继续|繼續|接着|接著)(?:写|寫)?你?的?(?:上|最后|最後)?一?[条條个個段]?"
    r"(?:消息|訊息|信息|回复|回覆|回答|发言|發言)"
    r"|(?:마지막|이전) (?:메시지|답변|대사)(?:를|을) (?:이어|계속))[^\]]{0,400}\]",
    re.IGNORECASE,
)


def is_filler(text: str) -> bool:
    """Whether a message only stands where a chat begins, as "[Start a new chat]" does."""
    return _FILLER.fullmatch(text.strip()) is not None


def is_nudge(text: str) -> bool:
    """Whether a message only asks the model to go on with its last one, as "[Continue your last
    message without repeating its original content.]" does. A person's "[continue]" is none, nor is
    "[Continue the scene: she opens the letter]", which says what is to come."""
    return _NUDGE.fullmatch(text.strip()) is not None
