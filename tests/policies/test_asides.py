"""Fillers and nudges that clients write under a person's name."""

import pytest

from policies.asides import is_filler, is_nudge


@pytest.mark.parametrize(
    "text",
    [
        "[Start a new chat]",
        "[Start a new Chat]\n",
        "[Start a new group chat. Group members: Ann, Bob]",
        "[Iniciar un nuevo chat]",
        "[Начать новый чат]",
        "[新しいチャット]",
        "[开始新的聊天]",
        "[새로운 채팅]",
    ],
)
def test_fillers(text: str) -> None:
    assert is_filler(text)
    assert not is_nudge(text)


@pytest.mark.parametrize(
    "text",
    [
        "[Continue your last message without repeating its original content.]",
        "[Continue the following message. Do not include ANY parts of the original message.]",
        "[Continue from where you left off.]",
        "[Continúa tu último mensaje sin repetirlo.]",
        "[Continúa con tu última respuesta.]",
        "[Продолжи своё последнее сообщение.]",
        "[最後のメッセージの続きを書いてください。]",
        "[请继续你上一条消息，不要重复。]",
        "[繼續寫你的最後一段回覆]",
        "[마지막 메시지를 이어서 써 주세요.]",
    ],
)
def test_nudges(text: str) -> None:
    assert is_nudge(text)
    assert not is_filler(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[continue]",
        "[Continue] with the story of your life",
        "Continue your last message.",
        "Start a new chat",
        "[OOC: let us begin anew]",
        "[She starts a new chat with him.]",
        "[Start]",
        "[Continue the scene. Anna finds the letter under the bed.]",
        "[Continue from here, but she tells him that her name is Vera]",
        "[Continúa con la escena: Ana abre la carta]",
        "[Продолжи сцену: Анна находит письмо]",
        "[继续写她打开门发现信的场景]",
        "[请继续上一幕，她说出真名]",
    ],
)
def test_a_persons_words_are_neither(text: str) -> None:
    assert not is_filler(text)
    assert not is_nudge(text)
