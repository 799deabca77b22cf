"""What a user hands on of others without quotation marks: `Orla wrote to me: I have two children`.

Whoever copies a letter in says "I" for somebody else. What follows such a lead is that person's
claim, to the end of its paragraph; what follows the head of a mail, to the end of the message. It
errs on the side of silence: a fact that is said again is learned then.
"""

import re
from collections.abc import Collection

from policies.judge.reading import fold
from policies.ledger.relatives import is_quoted_of_another

_COLON = re.compile(r":(?=\s|$)|：")
_LEAD = re.compile(r"[^.!?…。！？]*$")
_TO_ME = re.compile(r"(?:给|給|跟|对|對|向|问|問|回|回复|回覆|告诉|告訴)我")
"""Chinese names who hears it by the word for who speaks."""
_OWN_VERB = re.compile(r"\b(?:escribi|dije|digo|conte|respondi|conteste|pregunte)\b")
"""Spanish leaves `I` out."""
_LETTER = re.compile(
    r"\b(?:letter|message|e-?mail|mail|text|note|post ?card|card|post|comment|review|answer"
    r"|reply)s?\b.{0,30}\b(?:from|by|of)\b|\b(?:his|her|their)\s(?:\w+\s){0,2}(?:letter|message|e-?mail|mail"
    r"|text|note|post|answer|reply)\b"
    r"|\b(?:carta|mensaje|correo|nota|postal|respuesta|comentario)s?\b.{0,30}\b(?:de|del)\b"
    r"|\b(?:письм|сообщени|записк|открытк|ответ|коммент)\w*.{0,30}\bот\b"
    r"|からの?(?:.{0,6})(?:手紙|メール|メッセージ|返事|ライン|連絡|葉書|line)"
    r"|(?:来信|來信|的信|的消息|的短信|的邮件|的郵件|的留言|的回复|的回覆)"
    r"|(?:에게서|한테서|의|가 보낸|이 보낸)\s?(?:.{0,6})(?:편지|메시지|문자|메일|답장|쪽지|카톡)"
)
_HEAD = re.compile(
    r"^(?:from|de|от|von|差出人|送信者|发件人|發件人|寄件人|보낸\s?사람)\s?[:：]\s?\S"
    r"|^-{2,}\s?(?:original|forwarded|mensaje|пересыл|転送|原始|전달)"
)
_INDIRECT = re.compile(
    r"(?:と|って)(?!私|僕|俺)[^、。]{0,14}(?:さん|ちゃん|君|くん|氏|は|が)?[^、。]{0,10}"
    r"(?:言って|言った|言い|書いて|書いた|話して|話した|送って|送った|来た|来ました)"
)
"""Japanese puts who says it behind what was said, and leaves the marks out."""
_FIRST = re.compile(r"(?:私|僕|俺|わたし|ぼく)[はがも]?[^、。]{0,10}(?:言|書|話|送)")


def own_words(text: str, others: Collection[str] = ()) -> str:
    """A user's message without what it reports of others: quoted lines, letters that are copied in,
    lines under the names of `others` (folded), what stands behind the colon of a report."""
    kept: list[str] = []
    reporting = waiting = False
    for line in text.split("\n"):
        folded = fold(line).strip()
        if _HEAD.search(folded):
            break
        if not folded:
            reporting, waiting = waiting, False
            continue
        if reporting or waiting:
            reporting, waiting = True, False
            continue
        if folded.startswith(">") or _is_under(folded, others):
            continue
        own, reporting = _before_report(line)
        waiting = reporting and fold(line).strip().endswith((":", "："))
        kept.append(own)
    return "\n".join(kept)


def _is_under(folded: str, others: Collection[str]) -> bool:
    """Whether a line of a scene is somebody else's: `Kai: I live here.`"""
    return any(folded.startswith((f"{name}:", f"{name}：")) for name in others if name)


def _before_report(line: str) -> tuple[str, bool]:
    """What of a line stands before the colon of a report, and whether there is one."""
    for colon in _COLON.finditer(line):
        lead = _LEAD.search(line[: colon.start()])
        if lead is not None and _is_report(fold(lead.group())):
            return line[: lead.start()], True
    return "".join(filter(_is_own, re.split(r"(?<=[。！？])", line))), False


def _is_report(lead: str) -> bool:
    if _LETTER.search(lead):
        return True
    return is_quoted_of_another(_TO_ME.sub(" 说", lead)) and not _OWN_VERB.search(lead)


def _is_own(sentence: str) -> bool:
    folded = fold(sentence)
    return not _INDIRECT.search(folded) or bool(_FIRST.search(folded))
