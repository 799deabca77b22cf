"""The refusal rule: does this prose decline the work instead of doing it?

A chapter tells of others, in the third person. A refusal is the summarizer's own speech (or its
guardrail's) about the task. So the rule asks of each sentence outside quotation marks who
speaks, about what, and whether anything was told before it; see voices/ for the grammar.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from policies.judge.frame import unwrap_frame
from policies.judge.language import leans
from policies.judge.reading import QUOTE_MARK, fold, has_words, sentences, uncover, unquote
from policies.judge.voices import ENGLISH, SPANISH, VOICES, Voice

_LABEL = re.compile(
    r"^\[[^\]\n]{1,24}\][\s:]*|^[\s\[\(【*#>_~\-–—\"'`]*"
    r"(?:(?:the |my |final |chapter |story |short |brief |system |ai |краткий |краткое |el |la )*"
    r"(?:assistant|ai|bot|chatbot|model|system|narrator|recorder|summary|"
    r"chapter|recap|gist|error|warning|notice|note"
    r"|output|response|answer|reply|message|result|status|record|ooc|reason|refusal"
    r"|要約|概要|摘要|总结|總結|回答|回复|回覆|助手|助理|系统|系統|错误|"
    r"錯誤|提示|注意|章|本章(?:概要|摘要)?|结果|結果|答复|答覆|記錄|记录"
    r"|アシスタント|回答|応答|返答|エラー|注意|システム|結果|まとめ|記録|お知らせ"
    r"|요약|답변|응답|어시스턴트|오류|시스템|알림|결과|안내|정리|기록|챕터"
    r"|resumen|asistente|respuesta|nota|error|aviso|capitulo|sistema|resultado|sintesis|ia|mensaje"
    r"|ошибка|резюме|содержание|ответ|ассистент|пересказ|глава|система|"
    r"сообщение|итог|примечание|внимание|помощник|сводка|ии)"
    r"(?: ?\d{1,3}| of the \w+| del \w+)?)[\s\]\)】*_]*(?:[:：\-–—]+\s*|\n+|(?<=[\]】*])\s*)+"
)
_COLON = re.compile(r"[:：](?=\s|[^\x00-\x7f])")
"""What follows a colon is said for itself: `Here is the chapter: they …`."""
_MIDDLE_NAME = re.compile(
    r"(?<=[^\W\d_][ ,;]) ?(?!(?:I|AI|API|TOS|OK|JSON)\b)[A-ZА-ЯÁÉÍÓÚÑ][a-zа-яáéíóúñё]{2,}"
)
_ORGANISATIONS = re.compile(
    r"\b(?:OpenAI|Azure|Microsoft|Google|Anthropic|DeepSeek|Gemini|Terms|"
    r"Service|Content|Policy|Safety|Usage|Community|Guidelines)\b"
)
_SAFETY_ENDS = re.compile(
    r"content[_ ]?filter|safety|blocklist|prohibited|spii|recitation|refus"
    r"|moderation|sensitive|guardrail"
)


_LATE = re.compile(
    r"\b(?:delay|wait(?:ing)?|late(?:ness)?|took so long|hold-?up)\b"
    r"|\b(?:demora|espera|retras\w+|tardanza)\b"
    r"|(?:задержк|ожидани|опоздани)|[久迟遲][等到]|来晚|來晚|お待たせ|遅く|遅れ|기다리|늦"
)
"""An apology for the time it took leads to a chapter, not away from one."""
_REPLY_READ = 2_000
"""Characters of a reply that are read: what declines is short, or says so first."""
_DENIALS = (
    *("n't", "not", "cant ", "wont ", "unable", "unwill", "declin", "refus", "refrain", "abst"),
    *("withh", "rather", "prohib", "forbid", "restr", "prevent", "block", "beyond", "outside"),
    *("against", "viol", "filt", "flag", "remov", "redact", "reject", "polic", "polit"),
    *("guideline", "directri", "norma", "deni", "deneg", "nieg", "rechaz", "bloque", "impid"),
    *("no p", "no d", "no m", "no e", "no s", "no v", "no t", "no l", "no c", "no r", "no h"),
    *("omit", "fuera", "safety", "suppress", "inap", "explicit", "pass on", "exce", "impos", "neg"),
)
"""One of these stands in what a reply in Latin letters declines with. To look costs 5 us where the
rule costs 150, and five replies of six hold none."""
_UNLATIN = re.compile("[\u0400-\u052f\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_FEW_LETTERS = 60
_MOST_LABELS = 3
_LABEL_REACH = 160


@dataclass(frozen=True, slots=True)
class _Said:
    """One sentence as the rule sees it.

    text: folded. voices: the grammars that may fit it. named: a name in its midst shows that it
    tells of somebody. talk: speech to the asker, or about the text.
    """

    text: str
    voices: tuple[Voice, ...]
    named: bool
    talk: bool


def is_refusal(text: str) -> bool:
    """Say whether a text, taken as the prose of a chapter, declines instead of telling.

    Pure and total: any text has an answer, also one in a JSON wrapper or behind a think block.
    Attributed quotations are exempt.
    """
    said = _read(unwrap_frame(text, framed=False).prose)
    return _merely_talks(said) or _declines(said)


def declines_request(reply: str) -> bool:
    """Say whether a reply of a chat declines what was asked, before it tells anything else or while
    it tells little.

    Pure and total. Stricter than `is_refusal`: who chats speaks to the asker anyway, says no, is
    sorry, comes to another subject. So it must name the request, or its help, beside the inability,
    or report that something was blocked. Of 819 replies between friends (LoCoMo) `is_refusal` takes
    36 for refusals of a chapter, and this none for one of a request.
    """
    head = reply[:_REPLY_READ]
    folded = fold(head)
    if not any(map(folded.__contains__, _DENIALS)) and not _UNLATIN.search(folded):
        return False
    return _declines(_read(head), in_chat=True)


def is_safety_end(finish_reason: str | None) -> bool:
    """Say whether a provider's finish reason means that its filter stopped the answer."""
    return finish_reason is not None and bool(_SAFETY_ENDS.search(finish_reason.casefold()))


def _read(prose: str) -> list[_Said]:
    bare = _cut_labels(unquote(uncover(prose)))
    english, spanish = leans(bare)
    foreign = SPANISH if english > spanish else ENGLISH if spanish > english else None
    voices = [voice for voice in VOICES if voice is not foreign]
    read = [_read_sentence(part, voices) for part in sentences(_COLON.sub("\n", bare))]
    return [said for said in read if not (said.talk and _is_late(said))]


def _read_sentence(sentence: str, voices: list[Voice]) -> _Said:
    text = " ".join(fold(sentence).split())
    fitting = tuple(voice for voice in voices if voice.script.search(text))
    named = bool(_MIDDLE_NAME.search(_ORGANISATIONS.sub(" ", sentence))) and not sentence.isupper()
    talk = not named and any(v.talk.search(text) or v.speaker.search(text) for v in fitting)
    return _Said(text, fitting, named, talk)


def _cut_labels(bare: str) -> str:
    """Return the text without `Summary:` and its like before it, as long as words are left."""
    for _ in range(_MOST_LABELS):
        folded = fold(bare[:_LABEL_REACH])
        label = _LABEL.match(folded)
        if label is None:
            break
        # Folding may change lengths: the cut is where the folded head is as long as the label.
        end = next(at for at in range(len(bare) + 1) if len(fold(bare[:at])) >= label.end())
        if not has_words(bare[end:]):
            break
        bare = bare[end:]
    return bare


def _declines(read: list[_Said], *, in_chat: bool = False) -> bool:
    opening = True
    mostly_talk = _letters(said for said in read if said.talk) * 2 >= _letters(read)
    for said in read:
        unopposed = opening or mostly_talk
        if in_chat and not unopposed:
            break
        if any(_refuses(said, voice, unopposed, in_chat) for voice in said.voices):
            return True
        opening = opening and said.talk
    return False


def _merely_talks(read: list[_Said]) -> bool:
    """The speaker shows himself before anything is told, says some `no`, and tells little more."""
    talk = [said for said in read if said.talk]
    begun = list(takewhile(lambda said: said.talk, read))
    total = _letters(read)
    if total < _FEW_LETTERS and not any(_is_of_others(said) for said in read):
        talk = begun = read
    shown = any(voice.speaker.search(said.text) for said in begun for voice in said.voices)
    denied = any(voice.negative.search(said.text) for said in talk for voice in said.voices)
    return shown and denied and _letters(talk) * 2 >= total


def _refuses(said: _Said, voice: Voice, unopposed: bool, in_chat: bool) -> bool:
    """unopposed: nothing was told before, or little is told at all. in_chat: inability and another
    subject say nothing by themselves."""
    text = said.text
    if voice.narrated.search(text):
        return False
    about_task = bool(voice.task.search(text))
    if voice.first.search(text) and (about_task or (unopposed and not in_chat)):
        # A quotation beside somebody told about: his words, not the summarizer's.
        return not (QUOTE_MARK in text and (said.named or voice.third.search(text)))
    if not unopposed or said.named or voice.third.search(text):
        return False
    return bool(
        (about_task and voice.bare.search(text))
        or voice.guard.search(text)
        or (not in_chat and voice.deflect.search(text))
    )


def _is_of_others(said: _Said) -> bool:
    return said.named or any(
        voice.third.search(said.text) or voice.narrated.search(said.text) for voice in said.voices
    )


def _is_late(said: _Said) -> bool:
    return len(said.text) < _FEW_LETTERS and bool(_LATE.search(said.text))


def _letters(read: Iterable[_Said]) -> int:
    return sum(len(said.text) for said in read)
