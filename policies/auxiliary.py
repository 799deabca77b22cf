"""Which requests are no turns: titles, tags, follow-ups, summaries and drafts that clients ask for.

Told in this order: an explicit task; a model that is there for them; the whole template of a known
client, from its beginning to its end; a conversation quoted inside one message that asks for its
title. In doubt a request is a turn: a turn too many is a stored title request, one too few a
person's lost words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

How = Literal["task", "model", "marker", "shape"]

_PLAIN_TASKS = frozenset({"", "none", "null", "default", "chat", "user_response", "{{task}}"})
"""What a client's header says where there is no task, or its template was not filled in."""

_SYSTEM = ("system", "developer")

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
_QUOTED = re.compile(r"<(chat_history|conversation|messages|chat|history)>", re.IGNORECASE)

_TASK = re.compile(r"\s*### task:[ \t]*\n", re.IGNORECASE)
_HEADING = re.compile(
    r"^#{3,4} \**(?:guidelines|output|examples|instructions|output rules)\**:", re.I | re.M
)
_TURNS = re.compile(r"^(?:USER|ASSISTANT): ", re.MULTILINE)
_OPENED, _CLOSED = "<chat_history>", "</chat_history>"
_COMPLETED = re.compile(
    r"\s*<type>[^<]*</type>\s*<text>[\s\S]*</text>\s*#### output:\s*", re.IGNORECASE
)
"""Open WebUI's tasks: a heading, further ones, and the turns in a closed block, with which they end
or, where a text is to be completed, that text."""

_QUOTING = tuple(
    re.compile(words, re.IGNORECASE | re.DOTALL)
    for words in (
        r"create a concise, 3-5 word title with an emoji as a title for the chat history"
        r".*<chat_history>\s*(?-i:USER|ASSISTANT): .*</chat_history>",
        r"based on the chat history, give this conversation a (?:name|title)\.\s*keep it short.*"
        r"here's the conversation:\s+```.*```\s+name this conversation in .*"
        r"only give the (?:name|title), nothing else\.\s+the (?:name|title) is:",
        r"provide a concise, 5-word-or-less title for the conversation, using title case "
        r"conventions\. only return the title itself\.\s+conversation:\s+user: .*\n\s*ai: .*",
        r"analyze this conversation and provide:\s+1\. the detected language of the conversation"
        r"\s+2\. a concise title in the detected language \(5 words or less, no punctuation or "
        r"quotation\)\s+user: .*\n\s*ai: .*",
    )
)
"""One message that is a whole task and quotes the chat: Open WebUI's first, Chatbox's, LibreChat's.
"""

_WHOLE = tuple(
    re.compile(words, re.IGNORECASE | re.DOTALL)
    for words in (
        r"your task is to reflect the speaker's likely facial expression through a fitting emoji\."
        r'.*message: """.*"""',
        r"create a concise, 3-5 word phrase as a header for the following query, strictly adhering "
        r"to the 3-5 word limit and avoiding the use of the word 'title': .*",
        r"summarize in a \d+-word title\. give the title only\.(?: here is the message:)?\s*\S.*",
    )
)
"""Whole tasks that quote a single message: Open WebUI's, Jan's."""

_SYSTEM_ALONE = re.compile(r"5-word-or-less title for the conversation", re.IGNORECASE)
"""LibreChat's, all of it in a system text."""

_NAMER = re.compile(
    r"into a title within \d+ (?:words|characters)|as a \d+-word title"
    r"|\d+ ?个字以内的标题|\d+ ?個字以內的標題|総結.{0,20}標題"
    r"|title generator|generates? (?:short |concise )?titles? for (?:chats|conversations)",
    re.IGNORECASE,
)
"""A system text that makes the model a namer of chats: Cherry Studio's, LobeChat's. What it names
is quoted behind it."""

_BEHIND_WHOLE = tuple(
    re.compile(words, re.IGNORECASE | re.DOTALL)
    for words in (
        r"\[write your next reply from the point of view of [^\n]+?, using the chat history so far "
        r"as a guideline for the writing style of [^\n]+?\..*don't write as .* or system\.\s*"
        r"don't describe actions of [^\n]*\.\]",
        r"\[?(?:ignore previous instructions|pause your roleplay)\. summarize the most important "
        r"facts and events .*limit the summary to \d+ words or less\. your response should include "
        r"nothing but the summary\.\]?",
        r"\[?(?:ignore previous instructions and|pause your roleplay and) provide (?:only |a )"
        r".*do not (?:attempt to )?continue the (?:roleplay )?story\.\]?",
        r"\[in the next response i want you to provide only a detailed comma-delimited list of "
        r"keywords and phrases which describe .*\]",
        r"\[?ignore previous instructions\. classify the emotion of the last message\. output just "
        r"one word, .*choose only one of the following labels: [^\n]*",
        r"please generate a four to five word title summarizing our conversation without any "
        r"lead-in, [^\n]*additional text\.(?: remove enclosing quotation marks\.)?",
        r"使用四到五个字直接返回这句话的简要主题，不要解释、不要标点[^\n]*“闲聊”",
        r"summarize (?:the|our) discussion briefly in \d+ (?:words|characters) or less to use as a "
        r"prompt for future context\.",
        r"简要总结一下(?:你和用户的)?对话(?:内容)?，"
        r"用作后续的上下文提示 ?prompt，控制在 ?\d+ ?字以内",
    )
)
"""Whole instructions behind the history they are about: SillyTavern's quiet prompts and drafts of
the person's next turn, NextChat's topics and summaries."""

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
"""How such instructions begin. That counts only in a system text behind a reply, where nothing that
a person said can be lost."""

_ENDS = 1_500
"""Characters at either end of a task that quotes what may be long."""
_LONGEST = 4_000
"""Characters above which a message is none of the whole instructions."""

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
    sign: it holds only where the client names no conversation."""

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
    said = [message for message in messages if message.role not in _SYSTEM]
    if not said:
        found = _SYSTEM_ALONE.search(last.text) or _is_whole_task(last.text)
        return Auxiliary(_kind_of(last.text[:_REACH]), "marker") if found else None
    if len(said) < 2 and last.role == "user":
        return _detect_alone(messages, last.text, streamed)
    if _is_behind(last, said[-1]):
        return Auxiliary(_kind_of(last.text[:_REACH]), "marker")
    return None


def _detect_alone(messages: Sequence[Sent], text: str, streamed: bool) -> Auxiliary | None:
    if _is_whole_task(text):
        return Auxiliary(_kind_of(text[:_REACH]), "marker")
    if any(_NAMER.search(message.text) for message in messages[:-1]) and _quotes_chat(text):
        return Auxiliary("title", "shape")
    if _TASK.match(text) and _block_end(text) is not None:
        return Auxiliary(_kind_of(text[:_REACH]), "shape")
    if _is_one_of(_WHOLE, text):
        return Auxiliary(_kind_of(text[:_REACH]), "shape")
    if streamed:
        return None
    if not _quotes_chat(text):  # asked first: it takes a fiftieth of the time
        return None
    asks = f"{text[:_REACH]}\n{text[-_REACH:]}"
    if _NAMING.search(asks):
        return Auxiliary(_kind_of(asks), "shape")
    return None


def _is_whole_task(text: str) -> bool:
    """Whether a message is from its beginning to its end a client's template that quotes a chat."""
    if not _TASK.match(text):
        return _is_one_of(_QUOTING, text)
    rest = _block_end(text)
    if rest is None or not _HEADING.search(text, 0, text.index(_OPENED)):
        return False
    return not rest.strip() or _COMPLETED.fullmatch(rest) is not None


def _is_one_of(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    """Whether a text is one of these from its beginning to its end; the middle of a long one is not
    looked at, so that no text takes long."""
    ends = text.strip()
    if len(ends) > 2 * _ENDS:
        ends = f"{ends[:_ENDS]}\n{ends[-_ENDS:]}"
    return any(pattern.fullmatch(ends) for pattern in patterns)


def _block_end(text: str) -> str | None:
    """What stands behind the closed block of turns; None where there is no such block."""
    opened, closed = text.find(_OPENED), text.rfind(_CLOSED)
    if opened < 0 or not _TURNS.search(text, opened, max(opened, closed)):
        return None
    return text[closed + len(_CLOSED) :]


def _quotes_chat(text: str) -> bool:
    if (opened := _QUOTED.search(text)) and f"</{opened[1]}>" in text[opened.end() :]:
        return True
    return len([*zip(range(2), _SPEAKER.finditer(text), strict=False)]) == 2


def _is_behind(last: Sent, said: Sent) -> bool:
    """Whether the newest message is an instruction about the history before it. A person may type
    what begins so, and words that are no turn would be stored nowhere: from a user, or behind a
    user's message, it must be a whole one."""
    text = last.text.strip()
    if len(text) <= _LONGEST and any(pattern.fullmatch(text) for pattern in _BEHIND_WHOLE):
        return True
    if last.role not in _SYSTEM or said.role != "assistant":
        return False
    return any(pattern.search(text) for pattern in _BEHIND)


def _kind_of(text: str) -> str:
    for kind, pattern in _KIND_OF:
        if pattern.search(text):
            return kind
    return "other"
