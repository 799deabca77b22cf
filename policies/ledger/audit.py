"""What is wrong with a stored memory, seen by whoever reads it beside its source.

Where the judge decides whether a text may come in, an audit tells of each kind of fault how often
it got in all the same. Everything compares words: a fault that is told in quite other words than
its source is not seen.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.judge.beside import Beside
from policies.judge.heard import Heard
from policies.judge.reading import fold, sentences, unquote
from policies.ledger.content import content, held_content, is_borne
from policies.ledger.grounding import ground
from policies.ledger.persons import is_question
from policies.roleplay import split_marks
from policies.values import Line

_CLAIMED, _BORNE, _ENDED = 0.6, 0.4, 0.6
"""The share of a sentence's content that a character's line must hold to be its claim, that the
user's words or narration must hold to bear it out, and of a thread's that its end must hold."""

_LEAST_TERMS = 3
"""Of a sentence with fewer nothing is told: two words stand in many a line."""

_NO_CHARACTERS = ("user", "system", "developer", "tool", "function")

_REPORTED = re.compile(
    r"\b(?:sa(?:id|ys?|ying)|t(?:ell|old)s?|telling|claim\w*|assert\w*|explain\w*|insist\w*|"
    r"mention\w*|according to|describ\w*|sp[eo]ak\w*|spoke\w*|talk\w*|admit\w*|confess\w*|"
    r"promis\w*|warn\w*|suggest\w*|believ\w*|thinks?|thought|ask\w*|answer\w*|repl(?:y|ied|ies)|"
    r"respond\w*|stat(?:ed?|es|ing)|den(?:y|ied|ies)|sw(?:ear|ore)s?|reveal\w*|report\w*|"
    r"remark\w*|recall\w*|argu\w*|advis\w*|recommend\w*|offer\w*|propos\w*|jok(?:e|ed|es|ing)|"
    r"boast\w*|lie[ds]?|lying|pretend\w*|outwardly|allegedly|supposedly|apparently|seemingly|"
    r"announc\w*|declar\w*|not(?:ed|es)|add(?:ed|s)|comment\w*|observ\w*|share[ds]?|brought up|"
    r"came to|discuss\w*|encourag\w*|urg(?:ed?|es)|invit\w*|whisper\w*|word|story)\b"
    r"|\b(?:dij[oe]\w*|dice[ns]?|diciendo|cont(?:o|aba|aron|ó)|cuenta[ns]?|afirm\w*|asegur\w*|"
    r"explic\w*|insist\w*|mencion\w*|segun|según|describ\w*|habl\w*|admit\w*|confes\w*|promet\w*|"
    r"advirt\w*|sugir\w*|sugier\w*|cree[ns]?|pensaba?|pregunt\w*|respond\w*|contest\w*|neg(?:o|ó)|"
    r"niega|jur[oaó]|revel\w*|propus\w*|propon\w*|brome\w*|mint\w*|miente|fing\w*|supuestamente|"
    r"aparentemente|anunci\w*|declar\w*|coment\w*|record\w*|refirio|refirió)\b"
    r"|(?:сказал|говор|рассказ|утвержда|заяв|объясн|уверя|упомина|упомяну|по словам|описыва|"
    r"описал|призна|обеща|предупре|предлож|предлага|счита|дума|спрос|спраш|ответ|отвеч|отрица|"
    r"клян|поклял|раскры|сообщ|замет|вспомин|шут|лжет|лгал|солга|притвор|якобы|будто|затрагива)"
    r"|言[いうえっわ]|語[っりる]|話し|話す|述べ|主張|説明|告げ|伝え|尋ね|聞[いき]|答え|約束|警告|"
    r"認め|否定|嘘|ふり|という|らしい|触れ|話題|褒め|勧め|提案"
    r"|[说說讲講]|告诉|告訴|声称|聲稱|表示|解释|解釋|提到|提起|谈到|談到|描述|承认|承認|答应|"
    r"警告|建议|建議|认为|認為|问|問|回答|否认|否認|撒谎|撒謊|假装|假裝|据称|據稱|自称|自稱|发誓|透露"
    r"|말했|말하|말한|말로|라고|다고|이야기|얘기|주장|설명|언급|묘사|인정|고백|약속|경고|제안|"
    r"물었|물어|대답|답했|부정|거짓|척했|알려|전했|밝혔|꺼냈"
)
"""What shows that a sentence tells what was said, in place of what is so."""

_ENDS = re.compile(
    r"\b(?:finally|at last|found|returned?|gave back|given back|solved|settled|resolved|kept|paid|"
    r"arriv\w*|ended|finish\w*|complet\w*|decid\w*|answered|turned out|deliver\w*|won|lost|died|"
    r"repaired|fixed|agreed|recover\w*|opened|reached|met|caught|escaped|explained|chose|bought|"
    r"sold|passed|cancel\w*|gave up|no longer|came back|was over)\b"
    r"|\b(?:por fin|finalmente|encontr[oó]|encontraron|devolvi\w*|resolv\w*|resuelt[oa]|pag[oó]|"
    r"lleg[oó]|llegaron|termin[oó]|acab[oó]|decidi\w*|result[oó]|entreg[oó]|gan[oó]|perdi[oó]|"
    r"muri[oó]|arregl[oó]|repar[oó]|cumpli\w*|recuper[oó]|abri[oó]|ya no)\b"
    r"|(?:наконец|наш[её]л|нашл[аи]|вернул|реш[иеё]н|решил|выполн|заплат|приехал|прибыл|закончил|"
    r"заверш|оказал|доставил|выиграл|проиграл|умер|починил|договорил|сдержал|больше не)"
    r"|ついに|やっと|とうとう|見つか|見つけ|返し|返った|解決|果た|払っ|届い|届け|着い|終わ|終え|"
    r"決ま|決め|わかっ|分かっ|勝っ|負け|亡くな|直し|直っ|もう.{0,8}ない"
    r"|终于|終於|找到|归还|歸還|还给|還給|解决|解決|兑现|兌現|付了|到了|结束|結束|完成|决定|"
    r"決定|原来|原來|赢了|贏了|输了|輸了|去世|修好|不再"
    r"|마침내|드디어|찾았|찾아냈|돌려|해결|지켰|갚았|도착|끝났|끝냈|마쳤|결정|밝혀졌|이겼|졌다|"
    r"죽었|고쳤|더 이상"
)
_STILL = re.compile(
    r"\b(?:still|not yet|has not|have not|hasn't|haven't|will|would|wants? to|hopes?|plans?|"
    r"todavia|aun no|aun|va a|quiere|espera)\b|еще не|пока не|по-прежнему|собира|хочет"
    r"|まだ|つもり|たい|仍|还没|還沒|尚未|打算|想要|아직|하려고|싶"
)
"""What shows that a sentence tells of something that goes on."""


def find_claimed(prose: str, lines: Sequence[Line]) -> list[str]:
    """The sentences of a telling that state as so what only a character said.

    What is told as said is none, nor what the user's own words, narration or inner thought bear
    out, nor what nobody said.
    """
    names = content(" ".join({line.speaker for line in lines}))
    claims, truths = list(_claims(lines)), list(_truths(lines))
    found = []
    for sentence in sentences(unquote(prose)):
        wanted = content(sentence) - names
        if len(wanted) < _LEAST_TERMS or _REPORTED.search(fold(sentence)):
            continue
        is_claimed = any(is_borne(wanted, held, _CLAIMED) for held in claims)
        if is_claimed and not any(is_borne(wanted, held, _BORNE) for held in truths):
            found.append(sentence)
    return found


def is_claim_as_fact(about: str, text: str, lines: Sequence[Line]) -> bool:
    """Whether a fact of the user's is borne out by what a character said, and not by the user."""
    if is_own_fact(about, text, lines):
        return False
    speakers = dict.fromkeys(line.speaker for line in lines if line.role not in _NO_CHARACTERS)
    claims = tuple((speaker, "", text, "") for speaker in speakers)
    return bool(ground(Beside(claims=claims), lines).claims)


def is_own_fact(about: str, text: str, lines: Sequence[Line]) -> bool:
    """Whether the user's own words bear a fact out."""
    return bool(ground(Beside(facts=((about, text),)), lines).facts)


@dataclass(frozen=True, slots=True)
class Ending:
    """A sentence that tells an end: its own terms, and with those of the sentence before it."""

    terms: frozenset[str]
    around: frozenset[str]


def find_endings(prose: str) -> list[Ending]:
    """What a telling says to have ended, sentence by sentence."""
    told = sentences(prose)
    found = []
    for before, sentence in zip(["", *told], told, strict=False):
        folded = fold(sentence)
        if _ENDS.search(folded) and not _STILL.search(folded) and not is_question(folded):
            terms = held_content(sentence)
            found.append(Ending(terms, terms | held_content(before)))
    return found


def is_ended(thread: str, endings: Sequence[Ending]) -> bool:
    """Whether one of these ends is a thread's: the sentence, with the one before it, holds most of
    what the thread is about."""
    wanted = content(thread)
    if len(wanted) < _LEAST_TERMS:
        return False
    return any(wanted & end.terms and is_borne(wanted, end.around, _ENDED) for end in endings)


def is_of_another_speaker(who: str, text: str, lines: Sequence[Line]) -> bool:
    """Whether what somebody is said to have said stands only in another's lines."""
    wanted = content(text) - content(who)
    own, others = 0, 0
    for line in lines:
        met = len(wanted & held_content(line.text))
        if is_of(line.speaker, who):
            own = max(own, met)
        else:
            others = max(others, met)
    return len(wanted) >= _LEAST_TERMS and others >= _CLAIMED * len(wanted) and own * 2 < others


def is_of(speaker: str, who: str) -> bool:
    """Whether a name means a speaker: the whole of it, or one of its words."""
    one, other = fold(speaker).strip(), fold(who).strip()
    return one == other or other in one.split() or one in other.split()


def heard_of(lines: Sequence[Line]) -> Heard:
    """The lines as the judge's rules read them."""
    return Heard([("" if line.kind == "told" else line.speaker, line.text) for line in lines])


def _claims(lines: Sequence[Line]) -> Iterator[frozenset[str]]:
    """What characters say, questions left out."""
    for line in lines:
        if line.role in _NO_CHARACTERS or line.kind != "said":
            continue
        said = [s.text for s in split_marks(line.text) if s.kind == "said"]
        stated = [each for text in said for each in sentences(text) if not is_question(fold(each))]
        yield held_content(" ".join(stated))


def _truths(lines: Sequence[Line]) -> Iterator[frozenset[str]]:
    """What bears a sentence out: the user's words, narration, inner thought."""
    for line in lines:
        if line.role in _NO_CHARACTERS or line.kind != "said":
            yield held_content(line.text)
        else:
            for segment in split_marks(line.text):
                if segment.kind != "said":
                    yield held_content(segment.text)
