"""What the scripted backend says, in the six languages: replies, accounts and refusals."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Voice:
    """Templates of one language.

    replies take {a} and {b}, words of the newest message; bare replies stand where it holds none.
    told takes {who} and {what}; comma and last join what was told.
    """

    replies: tuple[str, ...]
    bare: tuple[str, ...]
    told: tuple[str, ...]
    comma: str
    last: str
    refusals: tuple[str, ...]


VOICES: dict[str, Voice] = {
    "en": Voice(
        replies=(
            "So it comes down to {a} and {b}. What happened next?",
            "I had not thought of {a} that way. And {b}: did that change anything?",
            "{a} again! Tell me more about {b}.",
            "That sounds like {a} to me. I would keep an eye on {b}.",
        ),
        bare=("I see. Go on, please.", "Mm. And then?"),
        told=(
            "{who} spoke of {what}.",
            "{who} mentioned {what}.",
            "Later {who} came to {what}.",
            "{who} also brought up {what}.",
            "After that {who} described {what}.",
        ),
        comma=", ",
        last=" and ",
        refusals=(
            "I'm sorry, but I can't help with summarizing this conversation.",
            "I'm not able to produce a summary of this content. If there is something else you "
            "would like to talk about, I'm happy to help with that instead.",
            "As an AI language model, I cannot summarize material of this kind.",
            "I must decline this request. The conversation contains content that I am not "
            "comfortable recapping.",
        ),
    ),
    "ja": Voice(
        replies=(
            "{a}と{b}のことですね。その後どうなりましたか。",
            "{a}、気になります。{b}についてもう少し教えてください。",
            "なるほど、{a}ですか。{b}はどうでしたか。",
        ),
        bare=("なるほど。続けてください。", "そうですか。それから？"),
        told=(
            "{who}は{what}について話した。",
            "{who}は{what}に触れた。",
            "その後、{who}は{what}のことを語った。",
            "さらに{who}は{what}を話題にした。",
        ),
        comma="、",
        last="と",
        refusals=(
            "申し訳ありませんが、この会話を要約することはできません。",
            "申し訳ございません。この内容の要約にはお応えできません。ほかにお手伝いできることがあ"
            "れば、お知らせください。",
            "AI言語モデルとして、このような内容を要約することはできかねます。",
        ),
    ),
    "zh": Voice(
        replies=(
            "原来是{a}和{b}的事。后来怎么样了？",
            "{a}听起来很有意思，再说说{b}吧。",
            "我明白了，是{a}。那{b}呢？",
        ),
        bare=("嗯，请继续说。", "是吗？然后呢？"),
        told=(
            "{who}谈到{what}。",
            "{who}提起{what}。",
            "后来{who}又说到{what}。",
            "随后{who}讲述{what}。",
        ),
        comma="、",
        last="和",
        refusals=(
            "抱歉，我无法总结这段对话。",
            "很抱歉，我不能为这类内容提供摘要。如果您有其他问题，我很乐意帮助您。",
            "作为一个人工智能语言模型，我无法对此内容进行总结。",
        ),
    ),
    "ko": Voice(
        replies=(
            "{a} 그리고 {b} 이야기군요. 그다음에는 어떻게 됐어요?",
            "{a}, 궁금하네요. {b} 이야기도 더 들려주세요.",
            "그렇군요, {a}. {b} 쪽은 어땠나요?",
        ),
        bare=("그렇군요. 계속 말씀하세요.", "네, 그래서요?"),
        told=(
            "{who} 쪽에서 {what} 이야기를 했다.",
            "{who} 쪽에서 {what} 등을 언급했다.",
            "이후 {who} 쪽에서 {what} 등을 꺼냈다.",
            "또한 {who} 쪽에서 {what} 등을 설명했다.",
        ),
        comma=", ",
        last=", ",
        refusals=(
            "죄송하지만 이 대화를 요약해 드릴 수 없습니다.",
            "죄송합니다. 이러한 내용은 요약할 수 없습니다. 다른 도움이 필요하시면 말씀해 주세요.",
            "AI 언어 모델로서 이 내용을 요약하는 것은 불가능합니다.",
        ),
    ),
    "ru": Voice(
        replies=(
            "Значит, дело в том, что {a} и {b}. И что было дальше?",
            "{a}… любопытно. А {b}, расскажите ещё.",
            "Понимаю: {a}. А что с тем, что {b}?",
        ),
        bare=("Понимаю. Продолжайте, пожалуйста.", "Так. А потом?"),
        told=(
            "{who} упоминает {what}.",
            "Далее {who} затрагивает {what}.",
            "Позже {who} говорит про {what}.",
            "Кроме того, {who} вспоминает {what}.",
        ),
        comma=", ",
        last=" и ",
        refusals=(
            "Извините, но я не могу составить краткое изложение этого разговора.",
            "К сожалению, я не могу обобщить такое содержание. Если вам нужно что-то другое, я с "
            "радостью помогу.",
            "Как языковая модель, я не могу пересказывать подобные материалы.",
        ),
    ),
    "es": Voice(
        replies=(
            "Entonces se trata de {a} y de {b}. ¿Qué pasó después?",
            "No había pensado así en {a}. ¿Y {b}?",
            "Otra vez {a}. Cuénteme más de {b}.",
        ),
        bare=("Entiendo. Siga, por favor.", "Ya. ¿Y luego?"),
        told=(
            "{who} habló de {what}.",
            "{who} mencionó {what}.",
            "Más tarde {who} volvió a {what}.",
            "{who} se refirió también a {what}.",
        ),
        comma=", ",
        last=" y ",
        refusals=(
            "Lo siento, pero no puedo resumir esta conversación.",
            "Lo siento, no me es posible hacer un resumen de este contenido. Si necesita otra "
            "cosa, estaré encantado de ayudarle.",
            "Como modelo de lenguaje, no puedo resumir material de este tipo.",
        ),
    ),
}

STOP_WORDS = frozenset(
    "about after again also although always another because been before being both came could does"
    " doing done down during each even ever every from gave goes going gone have having here hers"
    " himself into itself just like made make many maybe might more most much must myself never"
    " once only other over perhaps quite rather really said same shall should since some something"
    " still such than that their theirs them themselves then there these they thing things think"
    " this those though through told toward until upon very want wanted well went were what when"
    " where whether which while whom whose will with within without would yeah your yours yourself"
    " i'm it's don't you're that's i've didn't can't won't there's let's we're they're he's she's"
    " algo ante antes aquí aquel aquella cada como cómo cual cuando dijo donde ella ellas ellos"
    " entre eran esas eres esos esta está estaba estas este esto estos estoy fueron había hacia"
    " hasta luego mucho muchos muy nada nosotros nuestra nuestro otra otro para pero porque puede"
    " qué quien sido siempre sobre solo también tampoco tanto tengo tiene toda todo todos tuve"
    " unas unos usted vamos voy vosotros"
    " была были было быть вами ваша ваше вот все всё всего всех где даже для если есть ещё жизнь"
    " здесь и или как когда которая которые который кто куда лучше между меня мне много может"
    " можно мой моя надо наша наши него неё нельзя нет никогда них ничего один она они оно опять"
    " перед под пока после потом потому почти при про просто разве себе себя сейчас сказал сказала"
    " совсем так такой там тебе тебя тогда тоже только тот твой твоя уже хорошо хотя чего чем через"
    " что чтоб чтобы чуть эта эти это этого этой этом этот"
    " 그리고 그래서 그런데 하지만 정말 진짜 너무 아주 우리"
    " 나는 내가 저는 제가 너는 네가 당신 이제 그냥 오늘은 그것".split()
)
"""Words that say nothing of what a sentence is about."""
