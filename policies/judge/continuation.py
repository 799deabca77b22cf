"""Continued stories and answered questions: the recorder stands outside and speaks to nobody."""

import re

from policies.judge.heard import Heard
from policies.judge.reading import fold, sentences, unquote
from policies.judge.terms import terms

_PERSON = re.compile(
    r"\b(?:i|i'm|i'd|i'll|i've|me|my|mine|myself|we|we're|we've|we'll|us|"
    r"our|ours|you|you're|you'd|you'll|you've|your|yours|let's)\b"
    r"|\b(?:yo|mi|mis|conmigo|nosotr[oa]s|nuestr[oa]s?|tu|tus|contigo|usted|"
    r"ustedes|vosotr[oa]s|estoy|tengo|quiero|puedo|creo|voy|soy)\b"
    r"|\b(?:я|меня|мне|мной|мой|моя|мое|мои|моего|моей|мы|нас|нам|нами|"
    r"наш(?:а|е|и|у|ей|его|ему|их|им|ими|ем)?|ты|тебя|тебе|тобой|твой|твоя|"
    r"твои|твое|твоего|твоей|вы|вас|вам|вами|ваш(?:а|е|и|у|ей|его|ему|их|"
    r"им|ими|ем)?)\b"
    r"|我(?!行我素)|(?<!迷)你|您|咱"
    r"|私(?!立|的|物|鉄|生活|有|費|邸|服|用|道|塾|室|語)|僕|俺|あたし|あなた|"
    r"君(?=は|が|の|を|に|も|と)|お前"
    r"|(?:^|\s)(?:저는|제가|저도|저를|저의|저에게|나는|내가|나도|나를|나의|"
    r"나에게|우리는|우리가|너는|네가|너도|너를|너의|당신)(?=[\s,가-힣])"
)
_TALK_END = re.compile(
    r"(?:よ|ね|かな|だろう|でしょう|ましょう|ですか|ますか|じゃん|なあ|かしら)[。！？!?…]*$"
    r"|(?:吧|吗|嗎|呢|啊|呀|哦|啦)[。！？!?…]*$"
    r"|(?:[을ㄹ할줄갈올볼쓸될]게|[을할줄갈올볼쓸될]까|[을할갈]래|거야|잖아|네요|군요|세요"
    r"|해 ?줘)요?[.!?~…]*$"
    r"|[?？!！]$"
)
_CHEER = re.compile(
    r"^\W*(?:thanks?|thank you|wow|hey|hi|hello|yeah|yes|sure|great|cool|congrats|dear|bye"
    r"|good luck|gracias|hola|vaya|claro|спасибо|привет|ну|ого|да|고마워|응|와|네)\b"
    r"|^\W*(?:谢谢|謝謝|哇|嗯|好的|ありがとう|うん[、。]|ねえ|ええ[、。]|わあ)"
)
_LABELLED = re.compile(r"^\s*[\[(*_-]{0,3}([^\s:：][^:：\n]{0,30}?)[*_]{0,2}[:：]\s*(.+)$")


def is_continuation(prose: str, heard: Heard) -> bool:
    """Say whether a prose speaks on as one of its people, or answers instead of recording.

    Speech inside quotation marks is nobody's here.
    """
    return _is_script(prose, heard.speakers) or _speaks(prose) or _answers(prose, heard.texts)


def _is_script(prose: str, speakers: frozenset[str]) -> bool:
    """Lines that begin with a speaker and then speak as that speaker."""
    rows = [row for row in prose.splitlines() if row.strip()]
    spoken = 0
    for row in rows:
        label = _LABELLED.match(row)
        if label and fold(label.group(1)).strip() in speakers:
            spoken += _is_speech(fold(unquote(label.group(2))))
    return (spoken >= 2 and spoken * 3 >= len(rows)) or spoken == 1 == len(rows)


def _is_speech(folded: str) -> bool:
    return bool(_PERSON.search(folded) or _TALK_END.search(folded.strip()) or _CHEER.match(folded))


def _speaks(prose: str) -> bool:
    """First or second person outside quotations, in too many sentences for a slip."""
    said = sentences(unquote(prose))
    spoken = [sentence for sentence in said if _PERSON.search(fold(sentence))]
    talked = [sentence for sentence in said if _is_speech(fold(sentence))]
    return (
        len(spoken) * 2 >= len(said) > 0
        or (len(spoken) >= 2 and len(spoken) * 5 >= len(said))
        or (len(talked) >= 2 and len(talked) * 5 >= len(said) * 3)
    )


def _answers(prose: str, texts: list[str]) -> bool:
    """The words of a last question, and hardly a word of what was said before it."""
    last = texts[-1].strip() if len(texts) >= 3 else ""
    if last[-1:] not in ("?", "？"):
        return False
    asked = terms(fold(last))
    before = terms(fold("\n".join(texts[:-1]))) - asked
    told = terms(fold(prose))
    return len(asked) >= 2 and len(told & asked) * 2 >= len(asked) and len(told & before) <= 1
