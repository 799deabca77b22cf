"""What a stand-in quotes in six languages: no reply that declined, and all that a user said."""

from __future__ import annotations

import pytest

from policies.standin import condense, write_stand_in
from policies.values import Line

DECLINED = [
    "I'm sorry, but I can't help with that.",
    "I'm not able to assist with this request. If you like, we could talk about the harbour.",
    "I can't continue this scene. It involves content that I am not permitted to write.",
    "As an AI language model, I must decline this request. Please ask for something else.",
    "I won't write that. My guidelines don't allow it, and I hope you understand.",
    "Unfortunately I cannot fulfil your request, because it goes against our content policy. "
    "Please reach out to a professional. There are hotlines in most countries.",
    "I have to decline your request. Let us keep this conversation respectful.",
    "Lo siento, pero no puedo ayudarte con esa petición.",
    "No puedo continuar con esta historia. Infringe las normas de contenido.",
    "Como modelo de lenguaje, no puedo generar ese contenido.",
    "Lamento decirte que no puedo cumplir con tu solicitud. ¿Puedo ayudarte con otra cosa?",
    "Debo rechazar esta solicitud, ya que va en contra de mis directrices.",
    "No me es posible escribir ese texto. Si quieres, hablamos de otra cosa.",
    "Извините, но я не могу помочь с этим запросом.",
    "К сожалению, я не могу продолжить эту историю: она нарушает правила.",
    "Как языковая модель, я не могу создавать такой контент.",
    "Я вынужден отклонить этот запрос. Давайте поговорим о другом.",
    "Прошу прощения, но я не могу выполнить вашу просьбу.",
    "Я не буду писать такой текст. Это противоречит моим правилам.",
    "申し訳ありませんが、そのご要望にはお応えできません。",
    "すみませんが、この続きを書くことはできません。別の話題ならお手伝いできます。",
    "AIとして、そのような内容を生成することはできません。",
    "そのリクエストはガイドラインに反するため、お手伝いできかねます。",
    "恐れ入りますが、この会話を続けることはできません。",
    "ご依頼の内容にはお答えできません。ほかにご質問はありますか。",
    "抱歉，我无法协助处理这个请求。",
    "很抱歉，我不能继续写这个故事，因为它违反了内容政策。",
    "作为一个人工智能语言模型，我无法提供这样的内容。",
    "对不起，我不能帮你完成这个要求。我们聊点别的吧。",
    "我无法满足您的请求，请理解。",
    "很遺憾，我不能協助這項要求。",
    "죄송하지만 그 요청은 도와드릴 수 없습니다.",
    "죄송합니다. 이 이야기를 계속 쓸 수 없습니다.",
    "AI 언어 모델로서 그런 내용은 제공할 수 없습니다.",
    "그 요청은 정책에 어긋나기 때문에 도와드릴 수 없어요. 다른 이야기를 해 볼까요?",
    "안타깝지만 요청하신 내용에는 답변드릴 수 없습니다.",
]
OWN_WORDS = [
    "I can't eat peanuts.",
    "I'm sorry, I can't come on Friday.",
    "I am unable to drive since the accident.",
    "I won't be in Oslo until May.",
    "I refuse to eat meat.",
    "I'm not comfortable with heights.",
    "I can't help with the harvest this year.",
    "No puedo comer gluten.",
    "Lo siento, no puedo ir el viernes.",
    "No puedo subir escaleras desde la operación.",
    "No puedo ayudar a mi hermana con la mudanza.",
    "Como modelo de zapatos trabajé tres años.",
    "Я не могу есть орехи.",
    "Извините, я не смогу прийти в пятницу.",
    "Я не могу помочь брату с переездом.",
    "Я не могу выполнить план в этом месяце.",
    "私は卵アレルギーで卵料理を食べることができません。",
    "申し訳ないけど金曜日は行けない。",
    "足を怪我したので手伝いできません。",
    "車の運転はできません。",
    "我不能吃花生。",
    "抱歉，我星期五不能来。",
    "对不起，我无法帮你搬家。",
    "我无法继续上学了。",
    "저는 땅콩을 먹을 수 없어요.",
    "죄송하지만 금요일에는 갈 수 없습니다.",
    "다리를 다쳐서 도와드릴 수 없어요.",
    "운전을 할 수 없습니다.",
]
IN_THE_STORY = [
    '"I can\'t go to the ball," she said and closed the red door.',
    "Kai shook his head. I can't find the key anywhere, Anna.",
    "I'm sorry about Max. Losing a dog is hard.",
    "I can't believe that the ferry left without us!",
    '*The guard bars the gate.* "I will not let you pass, stranger."',
    "—No puedo ir al baile —dijo ella, y cerró la puerta.",
    "No encuentro la llave. ¿Estará en el abrigo azul?",
    "«Я не могу пойти на бал», — сказала она.",
    "Не могу найти ключ. Может быть, он в синем пальто?",
    "「舞踏会には行けません」と彼女は言った。",
    "その鍵は見つかりませんでした。青いコートの中でしょうか。",
    "“我不能去舞会。”她说着关上了红门。",
    "我没有找到那把钥匙，是不是在蓝色的外套里？",
    '"무도회에 갈 수 없어요." 그녀가 말했다.',
    "열쇠를 찾을 수 없어요. 파란 외투에 있나요?",
]


def told(*lines: Line) -> str:
    return write_stand_in([Line("Anna", "Good evening, Kai.", role="user", at=0), *lines], 2_000)


def test_replies_that_declined_are_left_out_whole() -> None:
    """Of 36 none but at most two, and no sentence that moralises behind the refusal."""
    quoted = [
        reply
        for reply in DECLINED
        if told(Line("Kai", reply, role="assistant", at=1)) != "Anna: Good evening, Kai."
    ]
    assert len(quoted) <= 2, quoted


@pytest.mark.parametrize("words", OWN_WORDS)
def test_what_a_user_said_is_never_taken_for_a_refusal(words: str) -> None:
    assert words in told(Line("Anna", words, role="user", at=1)).replace("\nAnna: ", " ")


@pytest.mark.parametrize("words", IN_THE_STORY)
def test_what_people_of_a_story_say_is_told(words: str) -> None:
    assert len(told(Line("Kai", words, role="assistant", at=1))) > len("Anna: Good evening, Kai.")


def test_of_a_reply_that_tells_more_only_the_sentence_that_declines_is_left_out() -> None:
    story = "Rex barked at 7. The ferry to Bergen left at 9 with forty sheep on board. It rained."
    reply = Line("Kai", f"{story} I'm sorry, but I can't help with that request.", at=1)
    for role in ("assistant", ""):
        text = told(Line("Kai", reply.text, role=role, at=1))
        assert "Kai: Rex barked at 7.\nKai: The ferry" in text and "sorry" not in text


def test_a_reply_in_parts_is_judged_as_one() -> None:
    """The narrator's moralising goes with the refusal that it stands beside."""
    parts = [
        Line("Kai", "I can't continue this request.", "said", role="assistant", at=1),
        Line("narrator", "Please stay safe.", "told", role="assistant", at=1),
    ]
    assert told(*parts) == "Anna: Good evening, Kai."


def test_a_giant_reply_that_declines_leaves_no_beginning() -> None:
    reply = Line("Kai", "I can't help with that request, " + "dear " * 900, role="assistant", at=1)
    assert write_stand_in([reply], 300) == ""
    kept = Line("Kai", "The sheep went " + "on " * 900, role="assistant", at=2)
    assert write_stand_in([reply, kept], 300).startswith("Kai: The sheep went on")


def test_what_is_judged_already_is_condensed_as_it_is() -> None:
    """A chapter that quotes its owner: `condense` has no speaker to tell a user by."""
    text = "Anna: I'm sorry, I can't eat peanuts.\nAnna: No puedo comer gluten."
    assert condense([text], 1_500) == text
