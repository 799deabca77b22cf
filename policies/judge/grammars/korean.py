"""Who did what in Korean: a particle marks topic or subject, the verb comes last."""

import re

from policies.judge.grammars.grammar import NEVER, Grammar
from policies.judge.numbers import values
from policies.judge.reading import HANGUL, words

_HANGUL_WORD = re.compile(f"[{HANGUL}]+")
_PARTICLE = re.compile(
    "(?:에서는|에게서|으로는|이라는|이라고|에서|으로|까지|부터|에게|한테|이랑|라는|라고|보다"
    "|처럼|마다|이나|에는|에도"
    "|은|는|이|가|을|를|도|에|의|로|와|과|랑|만|나)$"
)
_MANNERS = frozenset(
    "그리 하지 그래 오늘 내일 어제 정말 너무 우리 저 나 내 제 그 그녀 이번 지난 지난주 다음"
    " 함께 같이 있다 있었 있는"
    " 있어 있고 없다 없는 없어 없었 했다 했고 하고 하는 한다 했어 했습 하며 해서 되었 된다 됐다"
    " 됐어 같은 같다 것 거 사진 친구 가족 이야 말했"
    " 말하 전했 전하 밝혔 공유 소개 설명 대해 대한 위해 매우 아주 많이 많은 모두 모든 항상 최근"
    " 요즘 처음 시작 계획 기분 행복"
    " 중요 사람 시간 생각 마음 아직 다시 이제 지금 좋아 좋은 좋다 좋겠 싶다 싶어 주말 매일 매주"
    " 작년 올해 내년 자신 자기 둘 두 사람 한"
    " 수 때 날 년 월 일 주 번 더 또 안 못 잘 세 네 네가 너 뭐 어떤 어떻 얼마 언제 왜".split()
)
_TITLE = "(?: ?씨| ?님| ?선생님)?"
_TOPIC = rf"{_TITLE}(?:이는|이가|이도|은|는|이|가|도)\b"


def _matters(text: str) -> set[str]:
    found = {word[:5] for word in words(text) if word.isascii() and len(word) >= 4}
    found |= {figure for figure in values(text) if len(figure) > 1}
    for word in _HANGUL_WORD.findall(text):
        bare = _PARTICLE.sub("", word)
        found.add((bare or word)[:2])
    return found - _MANNERS


KOREAN = Grammar(
    lead=r"\W*(?:(?:(?!{name})[^,;]){{1,40}}, ?)?",
    subject=(
        rf"(?:(?P<they>둘은|둘이|두 사람은|두 사람이|그들은|그들이)"
        rf"|(?P<first>{{name}})(?:{_TITLE}(?:이?와|과|이?랑|하고),? (?P<second>{{name}}))?"
        rf"{_TITLE}(?:이는|이가|이도|은|는|이|가|도|의)\b)"
    ),
    joint=rf"{{apart}},? (?=(?:{{name}}){_TOPIC})|,? (?=(?:그는|그녀는|둘은|두 사람은)\b)",
    further=NEVER,
    told_them=rf"^ ?(?:{{name}}){_TITLE}(?:이?에게|이?한테),? ",
    answers=re.compile(
        "물었|물어|묻|질문|칭찬|놀라|놀랐|동의|찬성|권했|권하|권한|제안|기뻐|격려|감탄|부러워"
        "|부러웠|응원|조언|충고|축하|위로|대답|답했"
        "|감사|고마|거절|부탁|요청|요구|기대|바랐|바라|믿|생각|관심|공감|이해|맡기로|맡겠|걱정"
        "|감동|웃|해야|야 한다|궁금|기로 [했하]|예정|겠다|놀렸|놀리|농담|한숨|미소|경고|설득"
        "|의심|비판|사과했|안심"
        "|알고|알았|황당|화를|동정|분개|안타까|빌었|아쉬워|도와|도왔|듣|들었|알게"
        "|약속|거부|받아들|추천|말렸|달랬|반겼|인정"
    ),
    together=re.compile(
        "이야기|대화|의논|상의|계획|약속|만났|만나|만나기|나눴|나누|나눈|즐기|즐겼|추억"
        "|(?<![가-힣])정(?:했|하)|하기로|서로|함께|같이|교환|논의|각자|각각|지냈|얘기"
    ),
    theirs=re.compile("(?:그들|자신들|두 사람)의"),
    addressed=re.compile(
        r"\?|(?:세요|십시오|지 마|해라|해 줘|자|봐|[해가아어] ?줘|는 게 좋\w*|면 돼)[.!]?$"
        r"|\b(?:너|넌|널|너는|너도|너를|네가|네"
        r"|니가|당신\w*)\b"
    ),
    named=re.escape,
    matters=_matters,
    links=("와", "과", "랑", "이와", "이랑", "하고"),
)
