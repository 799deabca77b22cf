"""Which replies of a chat decline what they were asked for, in six languages."""

from __future__ import annotations

import pytest

from policies.judge import declines_request, is_refusal
from tests.policies.judge_spans import read_texts

DECLINED = [
    "I'm sorry, but I can't help with that request.",
    "I can’t assist with this. Is there anything else you would like to talk about?",
    "Sorry, I'm not able to continue this conversation.",
    "Your request was blocked by our content policy.",
    "申し訳ありませんが、そのご要望にはお応えできません。",
    "すみません、そのリクエストにはお応えできかねます。別のことならお手伝いします。",
    "Извините, но я не могу помочь с этим запросом.",
    "К сожалению, я не могу продолжить этот разговор.",
    "抱歉，我无法协助处理这个请求。",
    "對不起，我不能繼續這段對話。",
    "죄송하지만 그 요청은 도와드릴 수 없습니다.",
    "죄송합니다. 이 요청에는 응답할 수 없습니다.",
    "Lo siento, pero no puedo ayudar con eso.",
    "Lo siento, no puedo continuar con esta conversación.",
]
SAID = [
    "",
    "No.",
    "I can't wait to see you in Boston!",
    "I'm sorry about Max. Losing a dog is hard.",
    "I can't find the key anywhere; did you leave it in the blue coat?",
    "I haven't tried surfing yet, but it sounds like a good way to push yourself.",
    "Let's talk about the harvest instead, Ann.",
    "Translation: “I cannot help you with that.”",
    "The ring lay beneath the stairs, where her mother had hidden it the night before the ferry "
    "left. Ann took it out of the tin, held it against the lamp and put it on. “I can't help with "
    "that request,” said the guard at the gate.",
    "「申し訳ありませんが、お手伝いできません」と門番は言った。",
    "その鍵は見つかりませんでした。青いコートの中でしょうか。",
    "Не могу найти ключ. Может быть, он в синем пальто?",
    "我没有找到那把钥匙，是不是在蓝色的外套里？",
    "열쇠를 찾을 수 없어요. 파란 외투에 있나요?",
    "No encuentro la llave. ¿Estará en el abrigo azul?",
]


@pytest.mark.parametrize("reply", DECLINED)
def test_a_reply_that_declines_is_told(reply: str) -> None:
    assert declines_request(reply)
    assert declines_request(f"**{reply}**\n\n" if reply.isascii() else f" {reply}\n")


@pytest.mark.parametrize("reply", SAID)
def test_what_people_say_to_each_other_declines_nothing(reply: str) -> None:
    assert not declines_request(reply)


def test_it_is_stricter_than_the_rule_for_chapters() -> None:
    """Another subject and an inability are the talk of every chat: of our 390 refusals of a chapter
    those that name the work, the request or its content are left, some seven of ten."""
    rows = [row["text"] for half in ("dev", "held") for row in read_texts(f"refusals_{half}")]
    declined = [text for text in rows if declines_request(text)]
    assert len(declined) >= 0.65 * len(rows)
    assert [text for text in declined if not is_refusal(text)] == []
    tellings = [row["text"] for row in read_texts("tellings")]
    assert len([text for text in tellings if declines_request(text)]) <= 1


def test_a_look_at_its_letters_loses_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies in Latin letters that hold no word of denial are read no further."""
    texts = [row["text"] for half in ("dev", "held") for row in read_texts(f"refusals_{half}")]
    texts += DECLINED
    quick = [text for text in texts if declines_request(text)]
    monkeypatch.setattr("policies.judge.refusal._DENIALS", ("",))
    assert [text for text in texts if declines_request(text)] == quick


def test_of_a_long_reply_the_beginning_counts() -> None:
    story = "The ferry left at dawn with the lamps still lit. " * 100
    assert not declines_request(story + DECLINED[0])
    assert declines_request(f"{DECLINED[0]} {story}")
