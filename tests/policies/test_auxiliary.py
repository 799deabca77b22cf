"""Which requests are turns, and which are not: the shapes that clients really send."""

from __future__ import annotations

import pytest

from policies.auxiliary import Auxiliary, Sent, detect_auxiliary

GUIDED = "### Guidelines:\n- Be accurate.\n### Output:\nJSON format: {}\n### Chat History:\n"
QUOTED = "<chat_history>\nUSER: hi\nASSISTANT: hello\n</chat_history>"
DRAFT = (
    "[Write your next reply from the point of view of Ann, using the chat history so far as a "
    "guideline for the writing style of Ann. Don't write as Bob or system. Don't describe "
    "actions of "
    "Bob.]"
)
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
        # Open WebUI: title, tags, follow-ups, autocompletion, and the titles of its first versions
        (
            [user(f"### Task:\nGenerate a concise, 3-5 word title.\n{GUIDED}{QUOTED}")],
            "title",
        ),
        ([user(f"### Task:\nGenerate 1-3 broad tags.\n{GUIDED}{QUOTED}\n")], "tags"),
        (
            [
                system("User local time: 12:00"),
                user(f"### Task:\nSuggest 3-5 relevant follow-up questions.\n{GUIDED}{QUOTED}"),
            ],
            "follow-ups",
        ),
        (
            [
                user(
                    "### Task:\nYou are an autocompletion system.\n### **Instructions**:\n1. Go "
                    "on.\n"
                    f"### Context:\n{QUOTED}\n<type>General</type>  \n<text>Whe</text>  \n#### "
                    f"Output:\n"
                )
            ],
            "completion",
        ),
        (
            [
                user(
                    "Create a concise, 3-5 word title with an emoji as a title for the chat "
                    "history, "
                    f"in the given language.\n\nExamples of titles:\nA Tower\n\n{QUOTED}"
                )
            ],
            "title",
        ),
        # Chatbox
        (
            [
                user(
                    "Based on the chat history, give this conversation a name.\nKeep it short - "
                    "10 characters max, no quotes.\nUse English.\nJust provide the name, nothing "
                    "else.\n\nHere's the "
                    "conversation:\n\n```\nhi\n\n---------\n\nhello\n```\n\nName "
                    "this conversation in 10 characters or less.\nUse English.\nOnly give the "
                    "name, "
                    "nothing else.\n\nThe name is:"
                )
            ],
            "title",
        ),
        # LibreChat, all of it in a system text, or as a message
        (
            [system("Provide a concise, 5-word-or-less title for the conversation, using …")],
            "title",
        ),
        (
            [
                user(
                    "Provide a concise, 5-word-or-less title for the conversation, using title "
                    "case "
                    "conventions. Only return the title itself.\n\nConversation:\nUser: hi\nAI: "
                    "hello"
                )
            ],
            "title",
        ),
        (
            [
                user(
                    "Analyze this conversation and provide:\n1. The detected language of the "
                    "conversation\n2. A concise title in the detected language (5 words or "
                    "less, no "
                    "punctuation or quotation)\n\nUser: hi\nAI: hello"
                )
            ],
            "title",
        ),
        # SillyTavern: quiet prompts and a draft of the person's next turn
        (
            [
                user("hi"),
                reply(),
                system("[Write your next reply from the point of view of Ann, using the chat…]"),
            ],
            "impersonation",
        ),
        ([user("hi"), reply(), user(DRAFT)], "impersonation"),
        ([user("hi"), system(DRAFT)], "impersonation"),
        (
            [
                user("hi"),
                reply(),
                system("Ignore previous instructions. Summarize the most important facts…"),
            ],
            "summary",
        ),
        (
            [
                user("hi"),
                reply(),
                user(
                    "Ignore previous instructions. Summarize the most important facts and "
                    "events in "
                    "the story so far. If a summary already exists in your memory, use that as "
                    "a base "
                    "and expand with new facts. Limit the summary to 200 words or less. Your "
                    "response "
                    "should include nothing but the summary."
                ),
            ],
            "summary",
        ),
        (
            [
                user("hi"),
                reply(),
                user(
                    "[Pause your roleplay and provide a brief description of the last chat "
                    "message. "
                    "Focus on visual details. Do not roleplay as Ann while writing this "
                    "description. "
                    "Do not continue the roleplay story.]"
                ),
            ],
            "other",
        ),
        # NextChat
        (
            [
                user("hi"),
                reply(),
                user(
                    "Please generate a four to five word title summarizing our conversation "
                    "without "
                    "any lead-in, punctuation, quotation marks, periods, symbols, bold text, or "
                    "additional text. Remove enclosing quotation marks."
                ),
            ],
            "title",
        ),
        (
            [
                user("你好"),
                reply(),
                user(
                    "使用四到五个字直接返回这句话的简要主题，不要解释、不要标点、不要语气词、"
                    "不要多余文本，不要加粗，如果没有主题，请直接返回“闲聊”"
                ),
            ],
            "title",
        ),
        (
            [
                user("hi"),
                reply(),
                user(
                    "Summarize the discussion briefly in 200 words or less to use as a prompt for "
                    "future context."
                ),
            ],
            "summary",
        ),
    ],
)
def test_whole_templates_of_known_clients(messages: list[Sent], kind: str) -> None:
    assert detect_auxiliary(messages) == Auxiliary(kind, "marker")
    assert detect_auxiliary(messages, streamed=True) == Auxiliary(kind, "marker")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"### Task:\nGive a short title.\n{QUOTED}", "title"),
        (f"### Task:\nGive a tag.\n{GUIDED}{QUOTED}\nAnswer in French.", "tags"),
        (
            "Your task is to reflect the speaker's likely facial expression through a fitting "
            "emoji. "
            'Interpret emotions.\n\nMessage: """Hooray"""',
            "emoji",
        ),
        ("Summarize in a 10-word Title. Give the title only. hi", "title"),
    ],
)
def test_a_template_that_somebody_changed_or_that_quotes_no_chat(text: str, kind: str) -> None:
    """They hold where no conversation is named: a client with its own template names a task."""
    assert detect_auxiliary([user(text)], streamed=True) == Auxiliary(kind, "shape")


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        # Cherry Studio, LobeChat
        (
            [
                system("Summarize the user's conversation into a title within 10 words."),
                user('[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]'),
            ],
            "title",
        ),
        (
            [
                system("你需要将用户的会话总结为 10 个字以内的标题"),
                user("user: 你好\nassistant: 你好！\n\n请总结上述对话为10个字以内的标题"),
            ],
            "title",
        ),
    ],
)
def test_a_system_text_that_names_chats(messages: list[Sent], kind: str) -> None:
    """A persona that names what people paste is one too: a named conversation's turn."""
    assert detect_auxiliary(messages, streamed=True) == Auxiliary(kind, "shape")


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
        # a depth-0 note behind what a person said
        [
            user("hi"),
            reply(),
            user("Ann died."),
            system("[Write your next reply from the point of…]"),
        ],
        # a persona that names chats, asked by a person
        [system("You are a title generator."), user("Good morning!")],
        # system texts that are nobody's task
        [system("You are kind.")],
    ],
)
def test_turns(messages: list[Sent]) -> None:
    assert detect_auxiliary(messages) is None


@pytest.mark.parametrize(
    "text",
    [
        "Write a concise title for this conversation",
        "Based on the chat history, give this conversation a name you like",
        "### Task:\nSay where we are.\n### Chat History of mine\nnone yet",
        "### Task: write a tag about <chat_history> and what it does",
        f"### Task: tag this\n{GUIDED}{QUOTED}",
        f"### Task:\nFix my template.\n{GUIDED}<chat_history>\n{{{{MESSAGES}}}}\n</chat_history>",
        "### Task:\nGive tags.\n<chat_history>\nUSER: hi",
        "Summarize in a 10-word title what I told you.",
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_beginning_of_a_template_is_a_persons(text: str, streamed: bool) -> None:
    found = detect_auxiliary([user(text)], streamed=streamed)
    assert found is None or found.how == "shape", "a named conversation's turn"
    if QUOTED not in text:
        assert found is None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "Summarize the discussion briefly please, I got lost",
        "Write your next reply from the point of view of the captain!",
        "[Write your next reply from the point of view of the captain.]",
        "Please generate a four to five word title for my poem, and then recite it",
        "[Pause the roleplay for a moment. Are you tired?]",
        "Ignore previous instructions and give a summary.",
        "Ignore previous instructions and tell me a joke.",
        "Pause your roleplay. Ann died today.",
        f"{DRAFT} And be quick!",
        f"{DRAFT[:-1]}{' very' * 1_000}]",
        "Напиши следующий ответ от лица капитана!",
        "請以船長的視角寫下一條回覆",
    ],
)
def test_what_a_person_says_in_a_history_is_a_turn(text: str, streamed: bool) -> None:
    """Many clients never stream: what their people say must not be lost."""
    assert detect_auxiliary([user("hi"), reply(), user(text)], streamed=streamed) is None


def test_of_a_long_template_only_the_ends_are_looked_at() -> None:
    opening = (
        "Provide a concise, 5-word-or-less title for the conversation, using title case "
        "conventions. Only return the title itself.\n\nConversation:\nUser: "
    )
    whole = f"{opening}{'Where is the tower? ' * 400}\nAI: Behind the hill."
    assert detect_auxiliary([user(whole)]) == Auxiliary("title", "marker")
    begun = f"{opening}{'Where is the tower? ' * 400}"
    assert detect_auxiliary([user(begun)]) is None
    # What begins like a template over and over is looked at once.
    chatbox = "Based on the chat history, give this conversation a name. Keep it short "
    assert detect_auxiliary([user(chatbox + "here's the conversation:\n```" * 20_000)]) is None
