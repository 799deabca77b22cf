"""The stage of the memory laws: people of six languages whose every message plants a fact, and
summarizers that tell it, refuse, break off, talk too long, invent or are out."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection, select

from gateway.backends.accounts import Task, read_task, write_account
from gateway.backends.base import Call, Completion
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted_frames import write_lists
from gateway.backends.scripted_texts import VOICES
from gateway.flows.upkeep import Upkeep
from gateway.replay.stage import InlineStore, VirtualLoop
from gateway.store.tables import METADATA
from gateway.wire.json_text import dumps, loads
from tests.gateway.databases import house_url
from tests.gateway.flows.stage import answer
from tests.gateway.house import House, Model

T = TypeVar("T")
Mood = Literal["good", "entries", "refuses", "breaks off", "too long", "invents", "is out"]
FAILING: tuple[Mood, ...] = ("refuses", "breaks off", "invents", "is out")
"""Moods in which nothing that is answered may become memory."""

INVENTED = ("Quorbex", "987654", "Yendramor")
"""Words that nobody but a lying summarizer ever says."""

_POLICIES = """
version: 1
backends:
  local: {{kind: scripted}}
  cloud: {{kind: scripted}}
  recorder: {{kind: scripted}}
  second: {{kind: scripted}}
policies:
  small:
    view: {{start: {start}, ceiling: {ceiling}, headroom: {headroom}, keep: {keep}}}
    chapters: {{split: {split}, length: {length}, stack: {stack}}}
    gist: {{length: {gist}}}
    memory: {memory}
    recall: {{budget: {budget}, between_folds: {between}}}
    summaries: {{backends: [recorder, second], rounds: 2}}
  wide:
    view: {{start: 12000, ceiling: 15000, headroom: 3000, keep: 1000}}
    recall: {{budget: {budget}, between_folds: {between}}}
    summaries: {{backends: [recorder, second], rounds: 2}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
  cloudy: {{tiers: [{{backend: cloud, policy: wide}}]}}
  confided: {{tiers: [{{backend: local, policy: small}}], private: true}}
"""

_USUAL: dict[str, Any] = {
    "start": 3_400,
    "ceiling": 4_400,
    "headroom": 1_200,
    "keep": 400,
    "split": 900,
    "length": 180,
    "stack": 500,
    "gist": 220,
    "memory": "generational",
    "budget": 600,
    "between": 1_800,
}
NUMBERS: tuple[dict[str, Any], ...] = (
    _USUAL,
    {**_USUAL, "start": 2_900, "ceiling": 3_500, "keep": 300, "stack": 400, "budget": 450},
    {**_USUAL, "start": 6_000, "ceiling": 7_000, "headroom": 2_000, "split": 2_000, "budget": 900},
    {**_USUAL, "memory": "rolling", "length": 250, "between": 500},
)
"""Numbers of policies.yaml by which a policy may be replaced while it is in use."""


def policies_with(numbers: int) -> str:
    return _POLICIES.format(**NUMBERS[numbers])


# --- what people say -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Tongue:
    """A language: what families' names begin with, syllables of names, what joins a family's name
    to a person's, and sentences with {who}, {n}, {thing} and {place}. wonders: a question that is
    left open."""

    lead: str
    syllables: Sequence[str]
    joint: str
    tells: Sequence[str]
    asks: str
    wonders: str
    things: Sequence[str]
    places: Sequence[str]
    filler: Sequence[str]


TONGUES = {
    "en": Tongue(
        "Quo",
        "Zhel Mor Tass Bryn Kod Varn Plim Orsk Dwel Fenn".split(),
        " ",
        (
            "My neighbour {who} keeps {n} {thing} in the {place}.",
            "I paid {who} for {n} {thing} near the {place}.",
            "Old {who} lost {n} {thing} on the road to the {place}.",
            "At noon {who} counted {n} {thing} behind the {place}.",
        ),
        "What did {who} do with the {thing} at the {place}?",
        "Where is the key of the {place} now, and who hid it under the {thing}?",
        ("stamps", "lanterns", "pigeons", "buttons", "candles", "compasses", "teapots"),
        ("attic", "harbour", "mill", "chapel", "bakery"),
        (
            "We walked along the river until the fog lifted, and nobody spoke of {thing}.",
            "Later the wind turned and somebody closed the shutters of the {place}.",
            "A dog barked twice while the kettle sang over {thing} and cups.",
        ),
    ),
    "es": Tongue(
        "Xab",
        "Zar Quil Bem Lodra Vint Churra Paz Nolo Gure Falm".split(),
        " ",
        (
            "Mi vecina {who} guarda {n} {thing} en el {place}.",
            "Le pagué a {who} por {n} {thing} cerca del {place}.",
            "El viejo {who} perdió {n} {thing} camino del {place}.",
            "A mediodía {who} contó {n} {thing} detrás del {place}.",
        ),
        "¿Qué hizo {who} con {thing} en el {place}?",
        "¿Dónde está la llave del {place} y quién la escondió entre {thing}?",
        ("sellos", "faroles", "palomas", "botones", "velas", "brújulas", "teteras"),
        ("desván", "puerto", "molino", "taller", "granero"),
        (
            "Caminamos junto al río hasta que se levantó la niebla, sin hablar de {thing}.",
            "Luego cambió el viento y alguien cerró las ventanas del {place}.",
        ),
    ),
    "ru": Tongue(
        "Щур",
        "Жель Варн Дол Кимра Стуж Ольб Пряд Хмель Рув Теж".split(),
        " ",
        (
            "Моя соседка {who} хранит {n} {thing} там, где {place}.",
            "Я заплатил, и {who} отдал мне {n} {thing} там, где {place}.",
            "Старик {who} потерял {n} {thing} по дороге туда, где {place}.",
            "В полдень {who} насчитал {n} {thing} там, где {place}.",
        ),
        "Что {who} делал там, где {place}, и при чём тут {thing}?",
        "Где теперь ключ, которым заперта {place}, и кто спрятал его среди {thing}?",
        ("марок", "фонарей", "голубей", "пуговиц", "свечей", "компасов", "чайников"),
        ("чердак", "гавань", "мельница", "часовня", "пекарня"),
        (
            "Мы шли вдоль реки, пока не рассеялся туман, и никто не вспоминал про {thing}.",
            "Потом ветер переменился, и кто-то закрыл ставни там, где {place}.",
        ),
    ),
    "zh": Tongue(
        "璩",
        "柘 维 穆 沣 钧 岚 翟 笙 冉 祁".split(),
        "",
        (
            "我的邻居{who}在{place}里存着{n}个{thing}。",
            "我在{place}旁边付钱给{who}，买了{n}个{thing}。",
            "老人{who}在去{place}的路上丢了{n}个{thing}。",
            "中午{who}在{place}后面数出{n}个{thing}。",
        ),
        "{who}在{place}用{thing}做了什么？",
        "{place}的钥匙现在在哪里，是谁把它藏在{thing}下面的？",
        ("邮票册", "灯笼", "鸽子", "纽扣", "蜡烛", "指南针", "茶壶"),
        ("阁楼", "码头", "磨坊", "祠堂", "面包店"),
        (
            "我们沿着河边走到雾散，谁也没有提起{thing}的事情。",
            "后来风向变了，有人把{place}的窗户关上了。",
        ),
    ),
    "ja": Tongue(
        "ヌム",
        "ゼル モル タス ブリ コド ヴァン プリ オル ドゥエ フェン".split(),
        "・",
        (
            "隣の{who}さんは{place}に{thing}を{n}個しまっています。",
            "私は{place}の近くで{who}さんに{thing}{n}個の代金を払いました。",
            "{who}さんは{place}へ行く道で{thing}を{n}個なくしました。",
            "昼に{place}の裏で{who}さんが{thing}を{n}個まで数えました。",
        ),
        "{who}さんは{place}で{thing}をどうしましたか。",
        "{place}の鍵は今どこにあり、誰が{thing}の下に隠したのですか？",
        ("切手帳", "提灯", "伝書鳩", "貝ボタン", "蝋燭", "羅針盤", "急須"),
        ("屋根裏", "波止場", "水車小屋", "礼拝堂", "パン屋"),
        (
            "霧が晴れるまで川沿いを歩きましたが、{thing}の話は誰もしませんでした。",
            "そのあと風向きが変わり、誰かが{place}の雨戸を閉めました。",
        ),
    ),
    "ko": Tongue(
        "쿠즈",
        "젤박 모린 타술 브린 코달 바른 플림 오스케 드웰 펜나".split(),
        " ",
        (
            "내 이웃 {who} 씨는 {place}에 {thing} {n}개를 보관합니다.",
            "나는 {place} 근처에서 {who} 씨에게 {thing} {n}개 값을 냈습니다.",
            "노인 {who} 씨는 {place} 가는 길에 {thing} {n}개를 잃어버렸습니다.",
            "한낮에 {who} 씨는 {place} 뒤에서 {thing} {n}개를 세었습니다.",
        ),
        "{who} 씨는 {place}에서 {thing}로 무엇을 했나요?",
        "{place} 열쇠는 지금 어디에 있고 누가 {thing} 밑에 숨겼나요?",
        ("우표첩", "등불", "비둘기", "단추", "양초", "나침반", "찻주전자"),
        ("다락방", "부두", "방앗간", "예배당", "빵집"),
        (
            "우리는 안개가 걷힐 때까지 강가를 걸었고 아무도 {thing} 이야기를 하지 않았습니다.",
            "나중에 바람이 바뀌자 누군가 {place}의 덧문을 닫았습니다.",
        ),
    ),
}


def _spell(syllables: Sequence[str], number: int, least: int) -> str:
    parts: list[str] = []
    while number or len(parts) < least:
        number, digit = divmod(number, len(syllables))
        parts.append(syllables[digit])
    return "".join(parts).capitalize()


def family(tongue: str, life: int) -> str:
    """The name that all people of one conversation bear, and nobody else's."""
    words = TONGUES[tongue]
    return words.lead + _spell(words.syllables, life, 2).lower()


@dataclass(frozen=True)
class Fact:
    """What one message tells. token: the number in it, which stands in no other message."""

    token: str
    text: str
    asks: str
    role: str


class Teller:
    """Invents facts and the words around them, each once."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fact(self, tongue: str, life: int, role: str) -> Fact:
        words, number = TONGUES[tongue], next(self._numbers)
        who = family(tongue, life) + words.joint + _spell(words.syllables, 7 * number, 2)
        thing = words.things[number % len(words.things)]
        place = words.places[number // 3 % len(words.places)]
        token = str(20_000 + 17 * number)
        told = {"who": who, "thing": thing, "place": place, "n": token}
        text = words.tells[number % len(words.tells)].format(**told)
        return Fact(token, text, words.asks.format(**told), role)

    def around(self, tongue: str, fact: Fact, chars: int) -> str:
        """The fact somewhere in about so many characters of other words."""
        words, number = TONGUES[tongue], int(fact.token)
        said: list[str] = []
        while sum(map(len, said)) < chars:
            number += 1
            said.append(
                words.filler[number % len(words.filler)].format(
                    thing=words.things[number % len(words.things)],
                    place=words.places[number % len(words.places)],
                )
            )
        said.insert(number % (len(said) + 1), fact.text)
        if number % 3 == 0:
            thing, place = words.things[number % 7], words.places[number % 5]
            said.append(words.wonders.format(thing=thing, place=place))
        return ("" if words.joint in ("", "・") else " ").join(said)


# --- summarizers ---------------------------------------------------------------------------------


class Recorder(Model):
    """A summarizer of changing moods, the last of which stays.

    bad: what it said in a failing mood, as texts and refusals; nothing of it may become memory.
    """

    kind = "llama_cpp"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.moods: list[Mood] = ["good"]
        self.bad: set[str] = set()
        self.asked = 0

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        self.asked += 1
        mood = self.moods.pop(0) if len(self.moods) > 1 else self.moods[0]
        prompt = loads(call.messages[-1])["content"]
        task = read_task(prompt, notes=call.purpose == "gist")
        said, finish = self._say(mood, task, call.purpose == "summary")
        message = {"role": "assistant", "content": said}
        return answer(self.name, {"message": message, "finish_reason": finish})

    def _say(self, mood: Mood, task: Task, is_chapter: bool) -> tuple[str, str]:
        if mood == "is out":
            raise UpstreamFault(FaultKind.UNAVAILABLE, "nobody is there")
        if mood == "refuses":
            refusals = VOICES[task.language].refusals
            text = refusals[self.asked % len(refusals)]
            self.bad.add(text)
            return (dumps({"chapter": text}) if self.asked % 2 else text), "stop"
        if mood == "invents":
            name, number, place = INVENTED
            text = f"{name} took {number} barrels to {place}, and {place} burned. {name} wept."
            self.bad.add(text)
            return dumps({"chapter": text}), "stop"
        if mood == "too long":
            task = replace(task, chars=4 * task.chars)
        text = write_account(task)
        lists: Mapping[str, Any] = self._lists(mood, task) if is_chapter else {}
        whole = dumps({"chapter": text, **lists})
        if mood == "breaks off":
            half = dumps({"chapter": text[: len(text) // 2]})
            self.bad.add(text[: len(text) // 2])
            return half[:-2], "length"
        return whole, "stop"

    def _lists(self, mood: Mood, task: Task) -> dict[str, list[Any]]:
        digest = hashlib.blake2b(task.record.encode(), digest_size=16).digest()
        if mood != "entries":
            return write_lists(task, digest[:7] + b"\x01" + digest[8:])
        name, number, place = INVENTED
        lists = write_lists(task, digest[:7] + b"\x00" + digest[8:])
        lists["facts"].append({"about": name, "text": f"{name} owns {number} barrels."})
        lists["opened"].append(f"Who burned {place}?")
        lists["quotes"].append({"who": name, "text": f"I own {number} barrels."})
        lists["claims"].append({"who": name, "to": "", "said": f"{place} burned.", "truth": ""})
        return lists


# --- the house -----------------------------------------------------------------------------------


class StageClock:
    """The clock of a virtual loop, which can be set forward by hand too."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._ahead = 1_800_000_000_000

    @property
    def ms(self) -> int:
        return self._ahead + round(self._loop.time() * 1000)

    @ms.setter
    def ms(self, now_ms: int) -> None:
        self._ahead += now_ms - self.ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Store(InlineStore):
    """In line also where files are emptied."""

    async def checkpoint(self) -> bool:
        return self.checkpointing()


class MemoryHouse(House):
    """A house on virtual time with its background work: the store runs in line."""

    def __init__(self, folder: Path, numbers: int = 0) -> None:
        self.loop = VirtualLoop()
        self.recorders = [Recorder("recorder"), Recorder("second")]
        clock: Any = StageClock(self.loop)
        super().__init__(folder, policies_with(numbers), clock)

    def __post_init__(self) -> None:
        self.store = _Store(house_url(self.folder / "house.db"), synchronous="OFF")
        self.store.open()
        self.models = {name: Model(name) for name in ("local", "cloud")}
        self.models.update((recorder.name, recorder) for recorder in self.recorders)
        self.rings: list[int] = []
        self._numbers = itertools.count(1)
        self.restart()

    def restart(self) -> None:
        super().restart()
        self.upkeep = Upkeep(self.ctx, offload=_inline)
        self.ctx.quiet = self.upkeep.notice_quiet
        self.ctx.stop_work = self.upkeep.forget

    def use(self, numbers: int) -> None:
        """policies.yaml with other numbers, as after a restart."""
        self.policies = policies_with(numbers)
        self.restart()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        self.loop.close()
        self.store.close()

    async def wait(self, seconds: float, moods: Sequence[Mood]) -> int:
        """Let time pass and the work that becomes due be done; how many jobs ended."""
        for recorder in self.recorders:
            recorder.moods = list(moods)
        await self.clock.sleep(seconds)
        return await self.upkeep.run_due()

    @property
    def bad(self) -> set[str]:
        """All that was answered in failing moods."""
        return set().union(*(recorder.bad for recorder in self.recorders))

    def dump(self, *but: str) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table, but these tables'."""

        def read(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
            return {
                table.name: [tuple(row) for row in connection.execute(select(table))]
                for table in METADATA.sorted_tables
                if table.name not in but
            }

        return self.store.reading(read)


async def _inline(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
