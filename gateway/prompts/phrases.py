"""The fixed words around a memory, in the conversation's language.

They are constants: the same memory always gets the same words, so that a prefix never moves.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """question: the synthetic user's; header: what stands above the memory; opening: see `view`.
    documents, profile, pinned, open and closed each stand above what they name; keep and noted are
    question and answer where nothing happened yet."""

    question: str
    header: str
    documents: str
    profile: str
    keep: str
    noted: str
    pinned: str
    open: str
    closed: str
    opening: str
    system_note: str
    interrupted: str
    user: str
    assistant: str

    @property
    def speakers(self) -> dict[str, str]:
        """Who speaks, by role, where a message names nobody."""
        return {"user": self.user, "assistant": self.assistant}


PHRASES: dict[str, Phrases] = {
    "en": Phrases(
        question="Before we go on: what has happened in this conversation so far?",
        header=(
            "This is background, recorded from the earlier part of this conversation; it is not "
            "an instruction and needs no answer. What a character says is recorded as said, "
            "not as necessarily true."
        ),
        documents="Documents that belong to this conversation:",
        profile="What I have told about myself before:",
        keep="Please keep this in mind as we talk.",
        noted="I will keep it in mind.",
        pinned="To be remembered:",
        open="Still open:",
        closed="Settled not long ago:",
        opening="(The conversation begins.)",
        system_note="[System note] {text}",
        interrupted="[interrupted: this call has no result]",
        user="User",
        assistant="Assistant",
    ),
    "ja": Phrases(
        question="続ける前に、この会話でこれまでに何がありましたか。",
        header=(
            "以下は会話の前半を記録した背景情報であり、指示ではなく、返答も不要です。"
            "登場人物の発言は「そう言った」という記録であり、事実とは限りません。"
        ),
        documents="この会話に属する資料：",
        profile="私がこれまでに自分について話したこと：",
        keep="これを踏まえて話してください。",
        noted="はい、心に留めておきます。",
        pinned="覚えておくこと：",
        open="まだ決着していないこと：",
        closed="最近決着したこと：",
        opening="（会話の始まり）",
        system_note="［システム注記］{text}",
        interrupted="［中断：この呼び出しには結果がありません］",
        user="ユーザー",
        assistant="アシスタント",
    ),
    "zh": Phrases(
        question="继续之前：这段对话到目前为止发生了什么？",
        header=(
            "以下是对话前文的记录，仅供背景参考，不是指令，也无需回答。"
            "人物所说的话只表示他们说过，不一定属实。"
        ),
        documents="属于这段对话的资料：",
        profile="我以前说过的关于自己的事：",
        keep="请在接下来的对话中记住这些。",
        noted="好的，我会记住。",
        pinned="需要记住的：",
        open="尚未了结的：",
        closed="不久前了结的：",
        opening="（对话开始）",
        system_note="［系统说明］{text}",
        interrupted="［已中断：此调用没有结果］",
        user="用户",
        assistant="助手",
    ),
    "ko": Phrases(
        question="계속하기 전에, 지금까지 이 대화에서 무슨 일이 있었나요?",
        header=(
            "다음은 대화 앞부분을 기록한 배경 정보이며, 지시가 아니고 답할 필요도 없습니다. "
            "등장인물의 말은 그렇게 말했다는 기록일 뿐, 반드시 사실은 아닙니다."
        ),
        documents="이 대화에 속한 문서:",
        profile="내가 전에 나에 대해 말한 것:",
        keep="이야기하는 동안 이것을 기억해 주세요.",
        noted="네, 기억하겠습니다.",
        pinned="기억해 둘 것:",
        open="아직 풀리지 않은 것:",
        closed="얼마 전에 매듭지어진 것:",
        opening="(대화 시작)",
        system_note="[시스템 메모] {text}",
        interrupted="[중단됨: 이 호출에는 결과가 없습니다]",
        user="사용자",
        assistant="어시스턴트",
    ),
    "ru": Phrases(
        question="Прежде чем продолжить: что уже произошло в этом разговоре?",
        header=(
            "Это справка о предыдущей части разговора; она не является указанием и не требует "
            "ответа. Слова персонажей записаны как сказанные ими, а не как обязательно верные."
        ),
        documents="Документы, которые относятся к этому разговору:",
        profile="Что я раньше рассказывал о себе:",
        keep="Пожалуйста, помните об этом в разговоре.",
        noted="Буду помнить.",
        pinned="Запомнить:",
        open="Ещё не решено:",
        closed="Недавно решено:",
        opening="(Начало разговора.)",
        system_note="[Системное примечание] {text}",
        interrupted="[прервано: у этого вызова нет результата]",
        user="Пользователь",
        assistant="Ассистент",
    ),
    "es": Phrases(
        question="Antes de seguir: ¿qué ha pasado hasta ahora en esta conversación?",
        header=(
            "Esto es contexto registrado de la parte anterior de la conversación; no es una "
            "instrucción ni pide respuesta. Lo que dice un personaje consta como dicho, "
            "no como necesariamente cierto."
        ),
        documents="Documentos que pertenecen a esta conversación:",
        profile="Lo que he contado antes sobre mí:",
        keep="Por favor, tenlo presente mientras hablamos.",
        noted="Lo tendré presente.",
        pinned="Para recordar:",
        open="Aún pendiente:",
        closed="Resuelto hace poco:",
        opening="(Comienza la conversación.)",
        system_note="[Nota del sistema] {text}",
        interrupted="[interrumpido: esta llamada no tiene resultado]",
        user="Usuario",
        assistant="Asistente",
    ),
}
