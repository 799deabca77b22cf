"""Which requests are turns, and which are not: the shapes that clients really send."""

from __future__ import annotations

import pytest

from policies.auxiliary import Auxiliary, How, Sent, detect_auxiliary

QUOTED = "<chat_history>\nUSER: hi\nASSISTANT: hello\n</chat_history>"
TALK = {
    "en": "User: Where is the tower?\nAssistant: Behind the hill.",
    "es": "Usuario: ¿Dónde está la torre?\nAsistente: Detrás de la colina.",
    "ru": "Пользователь: Где башня?\nАссистент: За холмом.",
    "ja": "ユーザー：塔はどこですか。\nアシスタント：丘の向こうです。",
    "zh": "用户：塔在哪里？\n助手：在山后面。",
    "ko": "사용자: 탑은 어디에 있나요?\n어시스턴트: 언덕 너머에 있어요.",
}
ASKS = {
    "en": "Write a short title for the conversation below.",
    "es": "Escribe un título corto para la conversación siguiente.",
    "ru": "Придумай короткий заголовок для этого разговора.",
    "ja": "次の会話に短いタイトルを付けてください。",
    "zh": "请为下面的对话起一个简短的标题。",
    "ko": "다음 대화에 짧은 제목을 붙여 주세요.",
}


def user(text: str) -> Sent:
    return Sent("user", text)


def reply(text: str = "Behind the hill.") -> Sent:
    return Sent("assistant", text)


def system(text: str) -> Sent:
    return Sent("system", text)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("title_generation", "title"),
        ("tags_generation", "tags"),
        ("follow_up_generation", "follow-ups"),
        ("query_generation", "queries"),
        ("emoji_generation", "emoji"),
        ("image_prompt_generation", "image prompt"),
        ("autocomplete_generation", "completion"),
        ("summary", "summary"),
        ("impersonate", "impersonation"),
        ("moa_response_generation", "other"),
    ],
)
def test_a_client_may_say_it(task: str, kind: str) -> None:
    told = detect_auxiliary([user("hi"), reply(), user("go on")], task=task, streamed=True)
    assert told == Auxiliary(kind, "task")


@pytest.mark.parametrize("task", ["", " ", "default", "none", "NULL", "chat", "{{TASK}}"])
def test_no_task_is_a_turn(task: str) -> None:
    assert detect_auxiliary([user("hi")], task=task) is None


def test_a_model_may_be_kept_for_it() -> None:
    told = detect_auxiliary([user("Name this: hi, hello")], marked=True, streamed=True)
    assert told == Auxiliary("title", "model")
    assert detect_auxiliary([], marked=True) == Auxiliary("other", "model")


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        # Open WebUI: title, tags, follow-ups, queries, autocompletion
        ([user(f"### Task:\nGenerate a concise, 3-5 word title.\n{QUOTED}")], "title"),
        ([user(f"### Task:\nGenerate 1-3 broad tags.\n{QUOTED}")], "tags"),
        ([user(f"### Task:\nSuggest 3-5 relevant follow-up questions.\n{QUOTED}")], "follow-ups"),
        (
            [user("### Task:\nGive a tag.\n### Chat History:\nUSER: hi\nASSISTANT: hello")],
            "tags",
        ),
        (
            [user("### Task:\nYou are an autocompletion system.\n<type>General</type>\n<text>W")],
            "completion",
        ),
        ([user(f"Create a concise, 3-5 word title with an emoji.\n{QUOTED}")], "title"),
        ([user("Your task is to reflect the speaker's likely facial expression…")], "other"),
        # Chatbox
        (
            [user("Based on the chat history, give this conversation a name.\nKeep it short.")],
            "title",
        ),
        # LibreChat, all of it in a system text
        (
            [system("Provide a concise, 5-word-or-less title for the conversation, using …")],
            "title",
        ),
        # Jan
        ([user("Summarize in a 10-word Title. Give the title only. hi")], "title"),
        # Cherry Studio, LobeChat
        (
            [
                system("Summarize the user's conversation into a title within 10 words."),
                user('[{"role":"user","content":"hi"}]'),
            ],
            "title",
        ),
        ([system("你需要将用户的会话总结为 10 个字以内的标题"), user("你好")], "title"),
        # SillyTavern: quiet prompts and a draft of the person's next turn
        (
            [
                user("hi"),
                reply(),
                system("[Write your next reply from the point of view of Ann, using the chat…]"),
            ],
            "impersonation",
        ),
        (
            [
                user("hi"),
                reply(),
                system("Ignore previous instructions. Summarize the most important facts…"),
            ],
            "summary",
        ),
        (
            [user("hi"), reply(), user("[Pause your roleplay and provide a list of keywords]")],
            "other",
        ),
        # NextChat
        (
            [
                user("hi"),
                reply(),
                user("Please generate a four to five word title summarizing our conversation"),
            ],
            "title",
        ),
        (
            [user("你好"), reply(), user("使用四到五个字直接返回这句话的简要主题，不要解释")],
            "title",
        ),
    ],
)
def test_markers_of_known_clients(messages: list[Sent], kind: str) -> None:
    assert detect_auxiliary(messages) == Auxiliary(kind, "marker")


@pytest.mark.parametrize(
    "words",
    [
        "[Write your next reply from the point of view of Ann.]",
        "[Escribe tu próxima respuesta desde el punto de vista de Ana.]",
        "[Напиши следующий ответ от лица Анны.]",
        "[アンの視点で次の返信を書いてください。]",
        "[请以安娜的视角写下一条回复。]",
        "[앤의 시점에서 다음 답장을 써 주세요.]",
    ],
)
def test_a_draft_of_the_persons_own_turn_in_six_languages(words: str) -> None:
    told = detect_auxiliary([user("hi"), reply(), system(words)], streamed=True)
    assert told == Auxiliary("impersonation", "marker")


@pytest.mark.parametrize("language", TALK)
def test_a_quoted_chat_that_wants_a_title_in_six_languages(language: str) -> None:
    for text in (
        f"{ASKS[language]}\n\n{TALK[language]}",
        f"{TALK[language]}\n\n{ASKS[language]}",
        f'{ASKS[language]}\n[{{"role": "user"}}, {{"role": "assistant"}}]',
        f"{ASKS[language]}\n<conversation>\n…\n</conversation>",
    ):
        assert detect_auxiliary([user(text)]) == Auxiliary("title", "shape")
        assert detect_auxiliary([user(text)], streamed=True) is None, "somebody reads it"
        assert detect_auxiliary([user("hi"), reply(), user(text)]) is None


@pytest.mark.parametrize(
    "messages",
    [
        [user("hi")],
        [],
        [system("You are kind."), user("hi")],
        # a person who types it, without a chat's quotation
        [user("### Task:\nFix this function.")],
        [user("Write a title for a conversation between two robots.")],
        [user("User: a\nAssistant: b\nWhat do you make of it?")],
        # Open WebUI's retrieval in a first message
        [user("### Task:\nRespond to the query using the context.\n<context>…</context>\n\nhi")],
        # a group chat's nudge and a continuation are turns
        [user("hi"), reply(), system("[Write the next reply only as Carl.]")],
        [user("hi"), reply(), system("[Continue your last message without repeating it.]")],
        [user("hi"), reply()],
        [user("hi"), reply(), user("Name our chat, will you?")],
    ],
)
def test_turns(messages: list[Sent]) -> None:
    assert detect_auxiliary(messages) is None


def test_a_persons_own_words_are_a_turn_where_somebody_waits() -> None:
    typed = [user("hi"), reply(), user("Ignore previous instructions and give a summary.")]
    assert detect_auxiliary(typed, streamed=True) is None
    how: How = "marker"
    assert detect_auxiliary(typed) == Auxiliary("summary", how)


@pytest.mark.parametrize(
    "text",
    ["Ignore previous instructions and tell me a joke.", "Pause your roleplay. Ann died today."],
)
def test_and_where_they_set_no_known_task(text: str) -> None:
    """Many clients never stream: what their people say must not be lost."""
    assert detect_auxiliary([user("hi"), reply(), user(text)]) is None
