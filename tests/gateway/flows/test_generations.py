"""Two hundred generations of a memory, in each of six languages, under a summarizer that always
writes 30 % more than it was asked for: what it costs stays bounded, and no open thread is lost."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gateway.backends.base import Call, Completion
from gateway.flows.assignments import GistAssignment
from gateway.flows.folds import fold_if_due, plan_chapters
from gateway.flows.gist_jobs import load_gist, save_gist
from gateway.flows.memories import show_memory
from gateway.flows.migrate import plan_next_gist
from gateway.flows.recorder import Recorder
from gateway.flows.rounds import Counts, Draft, Rejected, Round
from gateway.flows.states import Site
from gateway.flows.views import ViewCache
from gateway.jobs import leases
from gateway.jobs.leases import Held
from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST, LEDGER_COST
from gateway.store import chapter_entries, chapter_rows, fold_rows, gist_rows, ledger
from gateway.store.fold_rows import FoldRow
from gateway.store.origins import find_origin
from gateway.store.transcript import Node
from gateway.wire.json_text import dump_bytes, dumps, loads
from policies.budget import limits_of
from policies.gists import find_lost
from policies.language import language_of
from policies.ledger.values import Entries, Thread
from policies.schema import Policy
from tests.gateway.house import House, user
from tests.gateway.seeds import add_conversation, extend

GENERATIONS = 200
OPEN_FOR = 6
"""Chapters after which a thread is resolved: so many are open at once, and one more."""

POLICY = Policy.model_validate(
    {
        "name": "small",
        "view": {"start": 6_000, "ceiling": 9_000, "headroom": 2_000, "keep": 1_000},
        "chapters": {"split": 2_400, "length": 150, "stack": 300},
        "gist": {"length": 250},
        # a tenth of what a fold leaves is 400; about three threads fit 200
        "ledger": {"length": 200},
    }
)


@dataclass(frozen=True)
class Words:
    """What the sentences of a language are made of: names, deeds, promises, things, places, skies,
    and the three sentences: what happened, what was promised, what nobody needs."""

    names: str
    deeds: str
    vows: str
    things: str
    places: str
    skies: str
    told: tuple[str, str, str]


WORDS = {
    "en": Words(
        "Mara Tobias Edwin Quill Halvard Ingrid Osric Selma",
        "carried hid sold painted burned mended buried weighed polished dropped",
        "owed promised pledged offered guaranteed lent",
        "barrels lanterns ropes letters coins oars maps candles anchors blankets keys",
        "Ansel Kerrin Dunmore Halcyon Skerry Lowick Tarbert Wick Orford Staithes",
        "snow fog thunder moonlight drizzle frost hail dusk",
        (
            "{a} {deed} {k} {thing} at {place} before {b} woke. ",
            "{a} {vow} {b} {k} {thing} for {place}. ",
            "In {sky} the {k} {thing} of {place} were quiet. ",
        ),
    ),
    "es": Words(
        "Marta Tobías Elena Quique Ignacio Lucía Óscar Sara",
        "llevó escondió vendió pintó quemó reparó enterró pesó limpió soltó",
        "debía prometió juró ofreció garantizó prestó",
        "barriles linternas cuerdas cartas monedas remos mapas velas anclas mantas llaves",
        "Ansel Cádiz Bermeo Laredo Muros Camariñas Luarca Ribadeo Noia Zumaia",
        "nieve niebla tormenta luna llovizna escarcha granizo ocaso",
        (
            "{a} {deed} {k} {thing} en {place} antes que {b}. ",
            "{a} {vow} a {b} las {k} {thing} de {place}. ",
            "Con {sky} callaban {k} {thing} en el puerto de {place}. ",
        ),
    ),
    "ru": Words(
        "Марья Тобиас Эдвин Квилл Игорь Ольга Осип Софья",
        "перенёс спрятал продал покрасил сжёг починил зарыл взвесил вымыл уронил",
        "задолжал обещал поклялся предложил гарантировал одолжил",
        "бочек фонарей канатов писем монет вёсел карт свечей якорей одеял ключей",
        "Ансель Керчь Выборг Онега Кемь Кола Луга Ладога Шуя Псков",
        "снег туман гроза луна морось иней град закат",
        (
            "{a} {deed} {k} {thing} у города {place} раньше, чем {b}. ",
            "{a} {vow} вернуть {b} {k} {thing} из города {place}. ",
            "Был {sky}, молчали {k} {thing} в гавани {place}. ",
        ),
    ),
    "ja": Words(
        "真理 俊夫 恵美 健一 美咲 大輔 沙織 洋平",
        "運んだ 隠した 売った 塗った 焼いた 直した 埋めた 量った 磨いた 落とした",
        "借りた 約束した 誓った 申し出た 請け合った 預かった",
        "油樽 角灯 麻縄 手紙 銀貨 木櫂 海図 蝋燭 鉄錨 毛布 合鍵",
        "函館 長崎 敦賀 酒田 下田 尾道 呉港 萩浦 小樽 室蘭",
        "雪空 濃霧 雷雨 月夜 小雨 霜夜 雹雨 夕闇",
        (
            "{a}は{b}より先に{place}で{thing}{k}個を{deed}。",
            "{a}が{place}の{thing}{k}個を{b}に返すと{vow}。",
            "{sky}の{place}に{thing}が{k}個あり静かだった。",
        ),
    ),
    "zh": Words(
        "玛拉 托比 艾德 奎尔 英格 奥斯 塞玛 海文",
        "搬走了 藏起了 卖掉了 漆好了 烧毁了 修好了 埋下了 称过了 擦亮了 弄丢了",
        "欠下 答应还 发誓还 提出还 保证还 借走",
        "油桶 提灯 麻绳 书信 银币 木桨 海图 蜡烛 铁锚 毛毯 钥匙",
        "青岛 泉州 宁波 大连 厦门 汕头 烟台 北海 舟山 连云",
        "雪天 浓雾 雷雨 月夜 细雨 霜夜 冰雹 黄昏",
        (
            "{a}赶在{b}之前于{place}{deed}{k}个{thing}。",
            "{a}{vow}{b}{k}个{place}的{thing}。",
            "{sky}里{place}有{k}个{thing}很安静。",
        ),
    ),
    "ko": Words(
        "마라 토비아스 에드윈 퀼란 잉그리드 오스릭 셀마 할바르",
        "날랐다 숨겼다 팔았다 칠했다 태웠다 고쳤다 묻었다 재었다 닦았다 떨어뜨렸다",
        "빚졌다 약속했다 맹세했다 제안했다 보증했다 빌렸다",
        "기름통 등불 밧줄 편지 은화 노 지도 양초 닻 담요 열쇠",
        "부산 목포 여수 속초 강릉 울산 통영 군산 포항 제주",
        "눈보라 안개 천둥 달빛 이슬비 서리 우박 노을",
        (
            "{a}는 {b}보다 먼저 {place}에서 {thing} {k}개를 {deed}. ",
            "{a}는 {place}의 {thing} {k}개를 {b}에게 주기로 {vow}. ",
            "{sky} 속 {place}의 {thing} {k}개는 조용했다. ",
        ),
    ),
}


def sentences(language: str, n: int) -> tuple[str, str, str]:
    """What happened, what was promised, and what nobody needs, the n-th time: hardly two share
    more than a few words."""
    words = WORDS[language]

    def pick(kind: str, step: int) -> str:
        listed = kind.split()
        return listed[(n * step + n // len(listed)) % len(listed)]

    told = {
        "a": pick(words.names, 3),
        "b": pick(words.names, 5),
        "deed": pick(words.deeds, 7),
        "vow": pick(words.vows, 5),
        "sky": pick(words.skies, 3),
    }
    made = [
        sentence.format(
            **told,
            thing=pick(words.things, 4 + at),
            place=pick(words.places, 3 + 4 * at),
            k=100 + (n * 37 + at * 211) % 800,
        )
        for at, sentence in enumerate(words.told)
    ]
    return made[0], made[1], made[2]


class Longwinded:
    """Writes 30 % more than it was asked for: what is still open, then what is quoted last."""

    kind = "scripted"
    name = "longwinded"
    local = True

    async def window(self) -> int | None:
        return None

    def dropped_params(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    async def complete(self, call: Call) -> Completion:
        prompt = loads(call.messages[0])["content"]
        quoted = re.search(r"\[begin record \w+\]\n(.*)\n\[end record", prompt, re.DOTALL)
        asked = re.search(r"(\d+)", prompt.split("[end record")[1].split("\n", 1)[1])
        assert quoted and asked
        text = self.write(quoted[1], int(asked[1]))
        message = {"role": "assistant", "content": dumps({"chapter": text})}
        whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Completion(dump_bytes(whole), whole)

    def write(self, quoted: str, asked: int) -> str:
        lines = re.split(r"(?<=[.。])\s*", quoted.replace("\n", " "))
        length, chosen = 0, []
        for line in dict.fromkeys(reversed([line.strip() for line in lines if line.strip()])):
            if length >= 1.3 * asked:
                break
            chosen.append(line)
            length += len(line) + 1
        return " ".join(reversed(chosen))


@dataclass
class Memory:
    """One conversation whose turns are rows: it is folded, its chapters and gists are written."""

    house: House
    language: str
    chapters: int = 0
    turns: int = 0
    folds: list[FoldRow] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def __post_init__(self) -> None:
        def begin(connection: Connection) -> tuple[Any, list[Node]]:
            return add_conversation(connection, [user("…")])

        self.conversation, nodes = self.house.store.writing(begin)
        self.head = nodes[-1]
        self.backend = Longwinded()
        ctx = self.house.ctx
        self.recorder = Recorder(Counts(), _inline, ctx.meters, ctx.clock.monotonic)

    async def live(self) -> None:
        """Turns until a fold was shown, and all that is due behind it."""
        known = len(self.folds)
        while len(self.folds) == known:
            self.house.store.writing(self._take_turn)
        await self._write_gists()

    def _site(self) -> Site:
        return Site(self.conversation, POLICY, limits_of(POLICY, 4.0), self.head, "r", 1)

    def _take_turn(self, connection: Connection) -> None:
        self.turns += 1
        (self.head,) = extend(connection, self.conversation, self.head, [user("x" * 2_000)])
        site = self._site()
        fold = fold_rows.deepest_fold(connection, self.conversation.pk, "small", self.head)
        shown = fold_if_due(connection, site, fold)
        if shown is not None and shown is not fold:
            self.folds.append(shown)
        plan_chapters(connection, site, shown, before=0, notes=0)
        connection.execute(text("DELETE FROM jobs WHERE kind = 'chapter'"))
        above = shown.border_depth if shown else 0
        coming = chapter_rows.chapter_row(connection, self.conversation.pk, self.head, above=above)
        for row in coming:
            if row.version_pk is None:
                self._write_chapter(connection, row)

    def _write_chapter(self, connection: Connection, row: Any) -> None:
        """As a summarizer's answer is stored: 30 % too long, with a thread opened, one resolved."""
        self.chapters += 1
        first, second, third = sentences(self.language, self.chapters)
        told, more = first + second, self.chapters
        while len(told) + len(third) <= 1.3 * POLICY.chapters.length:
            told, more = told + third, more + 1_001
            third = sentences(self.language, more)[2]
        version = chapter_rows.add_version(
            connection,
            self.conversation.pk,
            row.pk,
            text=told.strip(),
            origin="model",
            backend="longwinded",
            prompt=None,
            now_ms=1,
        )
        resolved = (self.chapters - OPEN_FOR,) if self.chapters > OPEN_FOR else ()
        chapter_entries.add_entries(
            connection,
            self.conversation.pk,
            row,
            version,
            Entries(opened=(Thread(second.strip(), 0),), resolved=resolved),
            sources=[row.first_pk],
            now_ms=1,
        )

    async def _write_gists(self) -> None:
        store = self.house.store
        while claimed := store.writing(self._claim):
            await self._write_gist(*claimed)

    async def _write_gist(self, held: Held) -> None:
        store = self.house.store
        origin = store.reading(find_origin, self.conversation.pk)
        assert origin is not None
        found = store.reading(load_gist, held.job, origin, POLICY)
        assert found is not None
        language = language_of("\n".join(found.notes))
        work = GistAssignment(found.notes, language, POLICY.gist.length, found.threads)
        outcome = await self.recorder.write(self._round(work, held))
        assert isinstance(outcome, Draft), self.rejected[-1]
        assert store.writing(save_gist, held, outcome, 1)
        pk = self.conversation.pk
        store.writing(plan_next_gist, pk, POLICY, held.job.payload, 1)

    def _claim(self, connection: Connection) -> list[Held]:
        jobs = leases.claim(
            connection,
            now_ms=10**14,
            lease="l",
            lease_ms=1_000,
            blocked=(),
            spare=(),
            limit=1,
        )
        return [Held(job, "l") for job in jobs]

    def _round(self, work: GistAssignment, held: Held) -> Round:
        return Round(
            work=work,
            order=[self.backend],  # type: ignore[list-item]
            rules=POLICY.summaries,
            key=held.job.key,
            attempt=0,
            ratios={},
            gate=_open,
            report=self._reject,
        )

    async def _reject(self, rejected: Rejected) -> None:
        self.rejected.append(rejected)

    def check(self, connection: Connection) -> None:
        fold = self.folds[-1]
        assert fold.kind == "fold", "never a cut"
        chapters = chapter_rows.versions_by_pk(connection, fold.memory)
        gist = gist_rows.gist_by_pk(connection, fold.gist_pk) if fold.gist_pk else None
        told = [row.text for row in chapters] + ([gist.text] if gist else [])
        # the stack that starts a major GC, and what this fold adds to it
        before = self.folds[-2].border_depth if len(self.folds) > 1 else 0
        added = sum(len(r.text) + CHAPTER_COST for r in chapters if r.first_depth > before)
        frames = FIXED_COST + GIST_COST + LEDGER_COST
        most = POLICY.gist.length + POLICY.chapters.stack + added + POLICY.ledger.length + frames
        assert fold.memory_chars <= most
        shown = show_memory(connection, fold, ViewCache())
        assert sum(len(message["content"]) for message in shown) == fold.memory_chars
        self._check_threads(connection, fold, "\n".join(told))

    def _check_threads(self, connection: Connection, fold: FoldRow, told: str) -> None:
        rows = ledger.open_threads(
            connection, self.conversation.pk, self.head, up_to_depth=fold.border_depth
        )
        listed = set(fold.shown.open)
        rest = [row.text for row in rows if row.pk not in listed]
        assert find_lost(told, rest, rest) == [], "open, and neither listed nor told"


async def _inline(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


@asynccontextmanager
async def _open(name: str) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("language", WORDS)
async def test_two_hundred_generations(tmp_path: Path, language: str) -> None:
    memory = Memory(House(tmp_path), language)
    majors: Sequence[Any] = ()
    unlisted = 0
    while len(majors) < GENERATIONS:
        await memory.live()
        memory.house.store.reading(memory.check)
        majors = memory.house.rows("SELECT pk FROM gists")
        unlisted += len(memory.folds[-1].shown.open) < OPEN_FOR
    assert memory.house.one("SELECT count(*) FROM gists WHERE origin <> 'model'") == 0
    # of 250 asked for 325 come: more than a quarter is too much, and is asked for again
    assert memory.rejected
    if language in ("en", "es", "ru"):  # where words are short all fit
        assert unlisted > GENERATIONS // 2, "the list alone would not have held them"
    longest = memory.house.one("SELECT max(length(text)) FROM gists")
    assert longest <= POLICY.gist.length * 1.25
    memory.house.store.close()
