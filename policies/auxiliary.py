"""Which requests are no turns: titles, tags, follow-ups, summaries and drafts that clients ask for.

Told in this order: an explicit task; a model that is there for them; markers of known clients;
a conversation quoted inside one message that asks for its title. In doubt a request is a turn: a
plain first message of a plain client always is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

How = Literal["task", "model", "marker", "shape"]

_PLAIN_TASKS = frozenset({"", "none", "null", "default", "chat", "user_response", "{{task}}"})
"""What a client's header says where there is no task, or its template was not filled in."""

_KINDS = (
    (
        "title",
        r"title|\bname\b|\btopic\b|t[ií]tulo|nombre|заголов|назван|назови|タイトル|題名|名前"
        r"|标题|標題|命名|名称|主题|제목|이름",
    ),
    ("tags", r"\btags?\b|etiquetas|\bтег|タグ|标签|標籤|태그"),
    (
        "follow-ups",
        r"follow[-_ ]?ups?|preguntas de seguimiento|следующ\w+ вопрос|フォローアップ|追问|追問"
        r"|후속",
    ),
    ("impersonation", r"point of view of|punto de vista de|от лица|視点|视角|視角|시점|impersonat"),
    ("queries", r"quer(?:y|ies)\b|search"),
    ("emoji", r"emoji"),
    ("image prompt", r"image|comma-delimited"),
    ("completion", r"autocomplet"),
    ("summary", r"summar|resum|кратк|резюме|要約|总结|總結|摘要|요약"),
)
_KIND_OF = tuple((kind, re.compile(words, re.IGNORECASE)) for kind, words in _KINDS)

_CHAT = r"(?:chat|conversation|dialog(?:ue)?|discussion|conversaci[oó]n|di[aá]logo|чат|бесед|диалог|разговор|переписк|会話|チャット|对话|對話|会话|會話|聊天|대화|채팅)"  # noqa: E501
_LABEL = r"(?:title|name|tags?|follow[- ]?ups?|summar|t[ií]tulo|nombre|etiquetas|resum|заголов|назван|назови|\bтег|кратк|резюме|タイトル|題名|名前|タグ|要約|标题|標題|命名|名称|标签|標籤|总结|總結|摘要|제목|이름|태그|요약)"  # noqa: E501
_NAMING = re.compile(rf"{_LABEL}[^\n]{{0,80}}{_CHAT}|{_CHAT}[^\n]{{0,80}}{_LABEL}", re.IGNORECASE)
_SPEAKER = re.compile(
    r"^\W{0,4}(?:user|human|assistant|ai|bot|usuario|asistente|пользователь|ассистент|ユーザー"
    r"|アシスタント|用户|用戶|助手|助理|사용자|어시스턴트)\W{0,4}?[:：]"
    r"|\"role\"\s*:\s*\"(?:user|assistant)\"",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(
    r"<(?:chat_history|conversation|messages|chat|history)>|^#+ chat history", re.I | re.M
)

_ALONE = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"^### task:(?=[\s\S]*(?:<chat_history>|### chat history|<type>[\s\S]*<text>))",
        r"^create a concise, 3-5 word (?:title|phrase)(?=[\s\S]*(?:<chat_history>|title))",
        r"^your task is to reflect the speaker's likely facial expression",
        r"^based on the chat history, give this conversation a name",
        r"5-word-or-less title for the conversation",
        r"^write a concise title for this conversation",
        r"^summarize in a \d+-word title",
    )
)
"""One message that is a whole task: Open WebUI's, Chatbox's, LibreChat's, Jan's."""

_NAMER = re.compile(
    r"into a title within \d+ words|\d+ ?个字以内的标题|\d+ ?個字以內的標題|総結.{0,20}標題"
    r"|title generator|generates? (?:short |concise )?titles? for (?:chats|conversations)",
    re.IGNORECASE,
)
"""A system text that makes the model a namer of chats: Cherry Studio's, LobeChat's."""

_BEHIND = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"^\W{0,3}write your next reply from the point of view of",
        r"^\W{0,3}escribe tu pr[oó]xima respuesta desde el punto de vista de",
        r"^\W{0,3}напиши(?:те)? (?:свой )?следующий ответ от лица",
        r"^\W{0,3}.{1,40}の視点(?:で|から).{0,20}(?:返信|返事|応答|発言)",
        r"^\W{0,3}(?:请)?(?:以|从|從).{1,40}的(?:视角|視角|角度).{0,20}(?:回复|回覆|回應|回应)",
        r"^\W{0,3}.{1,40}의 시점(?:에서|으로).{0,20}(?:답장|답변|대답)",
        r"^\W{0,3}(?:ignore|disregard) (?:all )?previous instructions",
        r"^\W{0,3}pause (?:your|the) roleplay",
        r"^\W{0,3}summarize the (?:most important facts|discussion briefly)",
        r"^\W{0,3}please generate a four to five word title",
        r"^\W{0,3}使用四到五个字直接返回这句话的简要主题",
        r"^\W{0,3}简要总结一下对话内容",
    )
)
"""An instruction behind the history it is about: SillyTavern's quiet prompts and drafts of the
person's next turn, NextChat's topics and summaries."""

_REACH = 400
"""Characters at either end of a message in which it says what it asks for."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of a request: its role and its plain text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """A request that is no turn: what it asks for, and what told it apart. "shape" is the weakest
    sign: it holds only where the request goes on with no conversation that is known."""

    kind: str
    how: How


def detect_auxiliary(
    messages: Sequence[Sent], *, task: str = "", marked: bool = False, streamed: bool = False
) -> Auxiliary | None:
    """Tell a request that is no turn; None for a turn.

    task: what the client's own header or metadata says; marked: the model asked for is kept for
    such requests; streamed: the client wants a stream, as for a reply that a person reads.
    """
    if task.strip().lower() not in _PLAIN_TASKS:
        return Auxiliary(_kind_of(task.replace("_", " ")), "task")
    last = messages[-1] if messages else Sent("user", "")
    if marked:
        return Auxiliary(_kind_of(last.text[:_REACH]), "model")
    said = [message for message in messages if message.role not in ("system", "developer")]
    alone = len(said) < 2 and (last.role == "user" or not said)
    if alone:
        return _detect_alone(messages, last.text, streamed)
    if _is_behind(last, streamed):
        return Auxiliary(_kind_of(last.text[:_REACH]), "marker")
    return None


def _detect_alone(messages: Sequence[Sent], text: str, streamed: bool) -> Auxiliary | None:
    if any(pattern.search(text) for pattern in _ALONE):
        return Auxiliary(_kind_of(text[:_REACH]), "marker")
    for message in messages[:-1]:
        if _NAMER.search(message.text):
            return Auxiliary("title", "marker")
    if streamed:
        return None
    if not _quotes_chat(text):  # asked first: it takes a fiftieth of the time
        return None
    asks = f"{text[:_REACH]}\n{text[-_REACH:]}"
    if _NAMING.search(asks):
        return Auxiliary(_kind_of(asks), "shape")
    return None


def _quotes_chat(text: str) -> bool:
    speakers = _SPEAKER.finditer(text)
    return _QUOTED.search(text) is not None or len([*zip(range(2), speakers, strict=False)]) == 2


def _is_behind(last: Sent, streamed: bool) -> bool:
    """Whether the newest message is an instruction about the history before it. A person may type
    such words: from a user they count in brackets, or where nobody waits for a stream and they say
    which task they set. A person's words that are no turn would be stored nowhere."""
    if not any(pattern.search(last.text) for pattern in _BEHIND):
        return False
    if last.role in ("system", "developer"):
        return True
    text = last.text.strip()
    if text.startswith("[") and text.endswith("]"):
        return True
    return not streamed and _kind_of(text[:_REACH]) != "other"


def _kind_of(text: str) -> str:
    for kind, pattern in _KIND_OF:
        if pattern.search(text):
            return kind
    return "other"
