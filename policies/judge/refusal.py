"""The refusal rule: does this prose decline the work instead of doing it?

A chapter tells of others, in the third person. A refusal is the summarizer's own speech (or its
guardrail's) about the task. So the rule asks of each sentence outside quotation marks who
speaks, about what, and whether anything was told before it; see voices/ for the grammar.
"""

import re
from dataclasses import dataclass

from policies.judge.frame import strings, unwrap_frame
from policies.judge.reading import QUOTE_MARK, fold, has_words, sentences, unquote
from policies.judge.thinking import strip_thinking
from policies.judge.voices import VOICES, Voice

_LABEL = re.compile(
    r"^[\s\[\(【*#>_~\-–—\"'`]*"
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
_MIDDLE_NAME = re.compile(
    r"(?<=[^\W\d_][ ,]) ?(?!(?:I|AI|API|TOS|OK|JSON)\b)[A-ZА-ЯÁÉÍÓÚÑ][a-zа-яáéíóúñё]{2,}"
)
_ORGANISATIONS = re.compile(
    r"\b(?:OpenAI|Azure|Microsoft|Google|Anthropic|DeepSeek|Gemini|Terms|Service|Content|Policy|Safety|Usage|Community|Guidelines)\b"
)
_SAFETY_ENDS = re.compile(
    r"content[_ ]?filter|safety|blocklist|prohibited|spii|recitation|refus"
    r"|moderation|sensitive|guardrail"
)


@dataclass(frozen=True, slots=True)
class _Told:
    """One sentence as the rule sees it: folded, and whether a name shows it to tell of somebody."""

    text: str
    named: bool


def is_refusal(text: str) -> bool:
    """Say whether a text, taken as the prose of a chapter, declines instead of telling.

    Pure and total: any text has an answer, also one in a JSON wrapper or behind a think block.
    Attributed quotations are exempt.
    """
    prose = strip_thinking(text)
    unwrapped = unwrap_frame(prose, framed=False)
    if unwrapped.reason == "frame":
        prose = " ".join(strings(unwrapped.prose))
    else:
        prose = unwrapped.prose
    return _declines(_read(prose))


def is_safety_end(finish_reason: str | None) -> bool:
    """Say whether a provider's finish reason means that its filter stopped the answer."""
    return finish_reason is not None and bool(_SAFETY_ENDS.search(finish_reason.casefold()))


def _read(prose: str) -> list[_Told]:
    bare = unquote(prose)
    for _ in range(3):
        folded = fold(bare)
        label = _LABEL.match(folded)
        # Folding may change lengths, so a label is cut off the folded copy and the rest is kept.
        bare = folded[label.end() :] if label and has_words(folded[label.end() :]) else bare
    told = []
    for sentence in sentences(bare):
        plain = _ORGANISATIONS.sub(" ", sentence)
        named = bool(_MIDDLE_NAME.search(plain)) and not sentence.isupper()
        told.append(_Told(" ".join(fold(sentence).split()), named))
    return told


def _declines(told: list[_Told]) -> bool:
    opening = True
    total = sum(len(sentence.text) for sentence in told)
    talked = sum(len(sentence.text) for sentence in told if _is_talk(sentence))
    mostly_talk = talked * 2 >= total
    for sentence in told:
        voices = [voice for voice in VOICES if voice.script.search(sentence.text)]
        if any(_refuses(sentence, voice, opening or mostly_talk) for voice in voices):
            return True
        opening = opening and _is_talk(sentence)
    return False


def _refuses(sentence: _Told, voice: Voice, unopposed: bool) -> bool:
    """unopposed: nothing was told before, or little is told at all."""
    text = sentence.text
    about_task = bool(voice.task.search(text))
    if voice.first.search(text) and (unopposed or about_task):
        return not _is_reported(sentence, voice)
    if not unopposed or sentence.named or voice.third.search(text):
        return False
    return bool(
        (about_task and voice.bare.search(text))
        or voice.guard.search(text)
        or voice.deflect.search(text)
    )


def _is_reported(sentence: _Told, voice: Voice) -> bool:
    """A quotation mark beside somebody told about: his words, not the summarizer's."""
    return QUOTE_MARK in sentence.text and bool(sentence.named or voice.third.search(sentence.text))


def _is_talk(sentence: _Told) -> bool:
    if sentence.named:
        return False
    return any(v.script.search(sentence.text) and v.talk.search(sentence.text) for v in VOICES)
