"""The frame's own words in the prose: instructions, labels and roles that belong to a prompt."""

import re

from policies.judge.heard import Heard
from policies.judge.reading import fold

_TERMS = tuple(
    re.compile(term)
    for term in (
        r"\barchivist\b|\bstory'?s recorder\b|\byour (?:task|role|job) is\b|"
        r"\byou are (?:the|a|an) (?:recorder|archivist|summari[sz]er|chronicler|"
        r"assistant)",
        r"\blong-term memory\b|\b(?:in the )?past tense\b|\b(?:in the )?third person\b",
        r"\b(?:the|this) (?:transcript|passage|excerpt|text|span|dialogue) (?:\w+ )?(?:"
        r"summari[sz]es|provides|highlights|describes|contains|presents|"
        r"discusses|shows|ends|begins|covers|is a summary)\b",
        r"\bjson (?:object|schema|format|frame)\b|\bas json\b|\"(?:chapter|"
        r"user_facts|claims|threads_opened|threads_resolved|quotes)\"\s*:",
        r"\b(?:do not|don'?t|never) (?:continue the story|invent|add anything|"
        r"answer (?:the|any) questions?)\b|\b(?:at most|about|no more than|"
        r"under|around) \d[\d,.]* (?:characters|words)\b",
        r"\b(?:is|are) as follows ?:|\bhere is (?:the|a|your) (?:json|summary in)\b",
        r"<(?:/?)(?:transcript|span|conversation|chapter|source|instructions?|"
        r"document|text)\b[^>\n]{0,40}>|={3,} ?(?:begin|end|transcript|"
        r"start)|\[(?:begin|end|start) ?of",
        r"(?:アーカイビスト|記録者として|長期記憶|過去形で|三人称で|json形式|"
        r"文字以内で|物語を続け(?:ない|ては)|対話記録は次|会話記録は以下)",
        r"(?:长期记忆|長期記憶|记录员|記錄員|第三人称|第三人稱|json ?格式|"
        r"字以内|字以內|不要(?:续|續)写|对话记录如下|對話記錄如下|对话如下|"
        r"對話如下)",
        r"(?:장기 기억|과거형으로|3인칭으로|json 형식|자 이내로|대화 기록은 다음과 같)",
        r"(?:долговременн\w+ памят|в прошедшем времени|от третьего лица|"
        r"в формате json|не продолжа(?:й|йте) (?:истори|рассказ))",
        r"(?:memoria a largo plazo|en tiempo pasado|en tercera persona|"
        r"formato json|no continues la historia)",
    )
)


def leaks_frame(prose: str, heard: Heard) -> bool:
    """Say whether a prose holds words of the task that its source does not."""
    told = fold(prose)
    for term in _TERMS:
        for found in term.finditer(told):
            if found.group() not in heard.folded:
                return True
    return False
