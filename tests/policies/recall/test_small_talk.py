"""What people say to keep a conversation going recalls nothing, whatever was said before."""

from __future__ import annotations

from functools import cache

import pytest

from tests.gateway.evals.talks import LANGUAGES, make_talk
from tests.policies.recall.shelf import Shelf, small_talk

SMALL_TALK = {
    "en": (
        *("ok, thanks", "Good morning! How are you today?", "haha that's so funny", "yes please"),
        *("Thanks, I feel better now", "Sounds good, let's do that", "What do you think?"),
        *("I'm tired, going to bed. Good night!", "Tell me more", "That's a great idea!"),
        *("wow really?", "I love you", "see you tomorrow", "hmm let me think about it"),
        *("no worries, take your time", "Can you help me?", "continue", "you're right, sorry"),
    ),
    "ja": (
        *(
            "うん、ありがとう！",
            "おはよう、今日もよろしくね",
            "了解です、やってみます",
            "なるほどね",
        ),
        *("今日はちょっと疲れたから寝るね", "すごいね、おめでとう！", "どう思う？", "もっと教えて"),
        *("はい、お願いします", "いい天気だね", "それでいいよ", "ごめんね", "続けて", "大好きだよ"),
        *("じゃあまた明日",),
    ),
    "zh": (
        *(
            "好的，谢谢！",
            "早上好，今天怎么样？",
            "知道了，我试试",
            "原来如此",
            "今天有点累，先睡了",
        ),
        *("太厉害了，恭喜你！", "你觉得呢？", "再说一点吧", "好，麻烦你了", "天气真好", "没关系"),
        *("对不起", "继续", "明天见", "我爱你"),
    ),
    "ko": (
        *(
            "응, 고마워!",
            "좋은 아침, 오늘도 잘 부탁해",
            "알겠어, 해볼게",
            "그렇구나",
            "네, 부탁해요",
        ),
        *("오늘은 좀 피곤해서 잘게", "축하해!", "어떻게 생각해?", "더 말해줘", "날씨 좋네"),
        *("괜찮아", "미안해", "계속해", "내일 봐", "사랑해"),
    ),
    "ru": (
        *("Ладно, спасибо!", "Доброе утро, как дела?", "Понял, попробую", "Вот как", "Извини"),
        *("Я устал сегодня, пойду спать", "Здорово, поздравляю!", "Как думаешь?", "До завтра"),
        *("Расскажи ещё", "Да, пожалуйста", "Погода хорошая", "Ничего страшного", "Продолжай"),
        *("Я тебя люблю",),
    ),
    "es": (
        *("Vale, gracias!", "Buenos días, ¿cómo estás?", "Entendido, lo intento", "Ya veo"),
        *("Hoy estoy cansado, me voy a dormir", "¡Genial, enhorabuena!", "¿Qué te parece?"),
        *("Cuéntame más", "Sí, por favor", "Qué buen tiempo hace", "No pasa nada", "Perdona"),
        *("Sigue", "Hasta mañana", "Te quiero mucho"),
    ),
}


@cache
def shelf(language: str) -> Shelf:
    if language not in LANGUAGES:
        return Shelf(small_talk(400))
    talk = make_talk(language)
    lines = [line for at in range(1, 31) for line in talk[f"session_{at}"]]
    return Shelf(
        [("user" if line["speaker"] == "A" else "assistant", line["text"]) for line in lines]
    )


@pytest.mark.parametrize(
    ("language", "said"), [(name, said) for name, lines in SMALL_TALK.items() for said in lines]
)
def test_small_talk_recalls_nothing(language: str, said: str) -> None:
    assert shelf(language).recall(said) == []
