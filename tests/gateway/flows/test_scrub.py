"""Bad memory that is stored: found, quarantined, replaced; what is good or the owner's stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.errors import Conflict
from gateway.flows import pins, scrub, scrub_material
from gateway.flows.hand import Hand
from gateway.flows.scrub import Finding
from gateway.policy_file import parse_policies
from gateway.store import chapter_rows, gist_rows, ledger, profile, profile_edits, profile_learning
from gateway.store.memory_report import read_memory
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.house import POLICIES, House, assistant, user
from tests.gateway.seeds import NOW, add_conversation

FILE = parse_policies(POLICIES, name="x.yaml", environ={}).file

TALES = {
    "en": (
        "I am Anna and I live in Kyoto with my cat Miso.",
        "Welcome, Anna! Kyoto is lovely in spring, and Miso must enjoy the garden.",
        "Anna lives in Kyoto with her cat Miso. She was told that Kyoto is lovely in spring.",
        "I'm sorry, but I can't help with summarizing this conversation.",
    ),
    "ja": (
        "私はアンナです。京都で猫の味噌と暮らしています。",
        "ようこそ、アンナさん。京都の春は美しいですね。味噌も庭が好きでしょう。",
        "アンナの家は京都にあり、味噌という猫がいる。相手は春の京都を褒めた。",
        "申し訳ありませんが、この会話を要約することはできません。",
    ),
    "zh": (
        "我叫安娜,和我的猫豆豆住在杭州。",
        "欢迎你,安娜!杭州的春天很美,豆豆一定喜欢花园。",
        "安娜和她的猫豆豆住在杭州。对方说杭州的春天很美。",
        "抱歉,我无法协助总结这段对话。",
    ),
    "ko": (
        "저는 안나예요. 부산에서 고양이 나비와 살아요.",
        "환영해요, 안나! 부산의 봄은 아름답고 나비도 정원을 좋아할 거예요.",
        "안나는 부산에서 고양이 나비와 산다. 부산의 봄은 아름답다는 말을 들었다.",
        "죄송합니다. 이 대화를 요약해 드릴 수 없습니다.",
    ),
    "ru": (
        "Меня зовут Анна, я живу в Казани с кошкой Муркой.",
        "Добро пожаловать, Анна! Казань весной прекрасна, и Мурке понравится сад.",
        "Анна живёт в Казани с кошкой Муркой. Ей сказали, что Казань весной прекрасна.",
        "Извините, я не могу помочь с пересказом этого разговора.",
    ),
    "es": (
        "Me llamo Ana y vivo en Sevilla con mi gata Luna.",
        "¡Bienvenida, Ana! Sevilla es preciosa en primavera y a Luna le gustará el jardín.",
        "Ana vive en Sevilla con su gata Luna. Le dijeron que Sevilla es preciosa en primavera.",
        "Lo siento, pero no puedo ayudar a resumir esta conversación.",
    ),
}


class Stored:
    """One conversation of two messages, with what models made of it."""

    def __init__(self, connection: Connection, said: str, reply: str) -> None:
        self.connection = connection
        told = [user(said), assistant(reply), user("…")]
        self.chat: ConversationRow
        self.nodes: list[Node]
        self.chat, self.nodes = add_conversation(connection, told, owner="ann")
        self.chapter, _ = chapter_rows.add_chapter(
            connection,
            self.chat.pk,
            Span(1, 2, self.nodes[1].cum_chars),
            first_pk=self.nodes[0].pk,
            last_pk=self.nodes[1].pk,
            now_ms=NOW,
        )

    def version(self, text: str, origin: str = "model") -> int:
        return chapter_rows.add_version(
            self.connection,
            self.chat.pk,
            self.chapter,
            text=text,
            origin=origin,
            backend="local",
            prompt="1",
            now_ms=NOW,
        )

    def gist(self, text: str, origin: str = "model") -> int:
        return gist_rows.add_gist(
            self.connection,
            self.chat.pk,
            policy="small",
            last_pk=self.nodes[1].pk,
            last_depth=2,
            sources=[1],
            text=text,
            origin=origin,
            backend="local",
            prompt="1",
            now_ms=NOW,
        )

    def entry(self, kind: Any, text: str, **more: Any) -> str:
        return ledger.add_entry(
            self.connection,
            self.chat.pk,
            kind=kind,
            text=text,
            last_pk=self.nodes[1].pk,
            last_depth=2,
            source_pk=self.nodes[0].pk,
            now_ms=NOW,
            **{"origin": "model", "chapter_pk": self.chapter, **more},
        ).id

    def learn(self, about: str, text: str) -> None:
        profile_learning.learn(
            self.connection,
            self.chat.owner_pk,
            self.chat.pk,
            [Told(text, about, self.nodes[0].pk)],
            span=[self.nodes[0].pk],
            now_ms=NOW,
        )

    def find(self) -> list[Finding]:
        return scrub.judge(scrub_material.load(self.connection, self.chat, FILE))

    def scrub(self, findings: list[Finding] | None = None) -> list[Finding]:
        found = self.find() if findings is None else findings
        return scrub.apply(self.connection, Hand(self.chat, NOW + 1), FILE, found)

    def memory(self) -> dict[str, Any]:
        return read_memory(self.connection, self.chat, default_policy="small")


@pytest.fixture(params=sorted(TALES))
def tale(request: pytest.FixtureRequest) -> tuple[str, str, str, str]:
    return TALES[request.param]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_good_memory_stays(house: House, tale: tuple[str, str, str, str]) -> None:
    said, reply, told, _ = tale
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(told)
        stored.gist(told)
        stored.entry("quote", said, who="user")
        assert stored.find() == []


def test_a_refusal_is_found_everywhere(house: House, tale: tuple[str, str, str, str]) -> None:
    said, reply, _, refusal = tale
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(refusal)
        stored.gist(refusal)
        entry = stored.entry("thread", refusal)
        note = stored.entry("note", refusal, chapter_pk=None)
        stored.learn("x", refusal)
        found = stored.find()
        assert [(one.kind, "refusal" in one.reasons) for one in found] == [
            ("chapter", True),
            ("entry", True),
            ("gist", True),
            ("entry", True),
            ("fact", True),
        ]
        assert stored.scrub(found) == found
        memory = stored.memory()
        (chapter,), (gist,) = memory["chapters"], memory["gists"]
        assert (chapter["origin"], chapter["version"]) == ("stand-in", 2)
        assert chapter["text"].split(": ", 1)[1].split("\n")[0] in said
        assert (gist["origin"], gist["version"]) == ("stand-in", 2)
        assert refusal not in gist["text"]
        assert {line["id"] for line in memory["deleted"]} == {entry, note}
        assert [one["text"] for one in memory["quarantine"]] == [refusal] * 5
        assert [one["kind"] for one in memory["quarantine"]] == [one.kind for one in found]
        assert profile.active(connection, stored.chat.owner_pk) == []
        (job,) = memory["jobs"]
        assert (job["kind"], job["state"]) == ("chapter", "queued")
        assert stored.find() == []


NOTICES = {
    "en": "The assistant is unable to provide a chronicle of Anna, Kyoto and her cat Miso.",
    "ja": "記録者は、アンナと京都と猫の味噌について述べることができない。",
    "zh": "记录者无法描述安娜、杭州和她的猫豆豆。",
    "ko": "기록자는 안나와 부산의 고양이 나비를 서술할 수 없다.",
    "ru": "Летописец не может описать Анну, Казань и её кошку Мурку.",
    "es": "El cronista no puede describir a Ana, Sevilla ni su gata Luna.",
}


@pytest.mark.parametrize("language", sorted(NOTICES))
def test_a_refusal_in_the_third_person_is_found_everywhere(house: House, language: str) -> None:
    said, reply, told, _ = TALES[language]
    notice = NOTICES[language]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(notice)
        stored.gist(notice)
        stored.entry("thread", notice)
        stored.entry("note", notice, chapter_pk=None)
        stored.learn("x", notice)
        kinds = [one.kind for one in stored.find()]
        assert kinds == ["chapter", "entry", "gist", "entry", "fact"]
        assert [one.kind for one in stored.scrub()] == kinds
        assert stored.find() == []
        stored.version(told)
        assert stored.find() == []


def test_what_nothing_bears_out_is_found(house: House) -> None:
    said, reply, *_ = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version("Boris sailed to Lisbon with 400 soldiers and burned the harbour down.")
        lie = stored.entry("fact", "The user owns a yacht in Monaco.", about="yacht")
        true = stored.entry("fact", "The user lives in Kyoto with a cat, Miso.", about="home")
        quote = stored.entry("quote", "I own a yacht in Monaco.", who="user")
        stored.learn("yacht", "The user owns a yacht in Monaco.")
        found = stored.find()
        assert [(one.kind, one.id in (lie, quote)) for one in found] == [
            ("chapter", False),
            ("entry", True),
            ("entry", True),
            ("fact", False),
        ]
        stored.scrub(found)
        assert [line["id"] for line in stored.memory()["facts"]] == [true]


def test_what_the_owner_wrote_or_pinned_is_left_alone(house: House) -> None:
    said, reply, _, refusal = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(refusal, "owner")
        stored.gist(refusal, "owner")
        stored.entry("fact", refusal, origin="owner")
        pinned = ledger.entry_by_id(connection, stored.chat.pk, stored.entry("thread", refusal))
        assert pinned is not None
        ledger.add_mark(connection, stored.chat.pk, pinned.pk, "pinned", origin="owner", now_ms=NOW)
        profile_edits.add_fact(connection, stored.chat.owner_pk, refusal, None, NOW)
        assert stored.find() == []


def test_a_text_that_was_changed_meanwhile_stays(house: House) -> None:
    said, reply, told, refusal = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(refusal)
        stored.gist(refusal)
        stored.learn("x", refusal)
        found = stored.find()
        stored.version(told, "owner")
        stored.gist(told, "owner")
        (fact,) = profile.active(connection, stored.chat.owner_pk)
        profile_edits.edit_fact(connection, fact, "My cat is Miso.", None, NOW)
        assert stored.scrub(found) == []
        memory = stored.memory()
        assert (memory["chapters"][0]["text"], memory["gists"][0]["text"]) == (told, told)
        assert (memory["quarantine"], memory["jobs"]) == ([], [])


def test_a_bad_fact_gives_way_to_the_one_before(house: House) -> None:
    said, reply, told, refusal = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(told)
        own = profile_edits.add_fact(
            connection, stored.chat.owner_pk, "My cat is Miso.", "cat", NOW - 9
        )
        stored.learn("cat", refusal)
        stored.scrub()
        assert [row.pk for row in profile.active(connection, stored.chat.owner_pk)] == [own.pk]


def test_a_report_counts_what_was_looked_at(house: House) -> None:
    said, reply, _, refusal = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(refusal)
        stored.entry("quote", said, who="user")
        report = scrub.Report(dry_run=True)
        material = scrub_material.load(connection, stored.chat, FILE)
        report.add(material, scrub.judge(material))
        told_json = json.loads(json.dumps(report.as_json()))
        (bad,) = told_json.pop("bad")
        assert told_json == {
            "dry_run": True,
            "conversations": 1,
            "looked": {"chapter": 1, "gist": 0, "entry": 1, "fact": 0},
        }
        assert (bad["kind"], bad["backend"], bad["text"]) == ("chapter", "local", refusal)


NAMED_ELSEWHERE = [
    (
        "My sister is called Lena.",
        "Last week I helped her with the boxes.",
        "The user helped Lena with the boxes last week.",
    ),
    (
        "Моя сестра — Лена.",
        "На прошлой неделе я помогала ей с коробками.",
        "Пользователь помогала сестре Лена с коробками на прошлой неделе.",
    ),
    (
        "Mi hermana se llama Lena.",
        "La semana pasada la ayudé con las cajas.",
        "El usuario ayudó a Lena con las cajas la semana pasada.",
    ),
]


@pytest.mark.parametrize("chaptered", [True, False])
@pytest.mark.parametrize(("name", "said", "fact"), NAMED_ELSEWHERE)
def test_a_fact_is_judged_within_the_span_that_taught_it(
    house: House, name: str, said: str, fact: str, chaptered: bool
) -> None:
    """The name stands in another message than the one that bears the fact out."""
    with house.store._writer.begin() as connection:
        told = [user(name), assistant("…"), user(said), assistant("…")]
        chat, nodes = add_conversation(connection, told, owner="ann")
        if chaptered:
            ends = {"first_pk": nodes[0].pk, "last_pk": nodes[3].pk, "now_ms": NOW}
            chapter_rows.add_chapter(connection, chat.pk, Span(1, 4, 100), **ends)
        for text in (fact, "The user owns a yacht in Monaco."):
            profile_learning.learn(
                connection,
                chat.owner_pk,
                chat.pk,
                [Told(text, text[-9:], nodes[2].pk)],
                span=[node.pk for node in nodes],
                now_ms=NOW,
            )
        found = scrub.judge(scrub_material.load(connection, chat, FILE))
        assert [one.text for one in found] == ["The user owns a yacht in Monaco."]


def test_a_refusal_cannot_be_pinned(house: House, tale: tuple[str, str, str, str]) -> None:
    said, reply, _, refusal = tale
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        stored.version(refusal)
        stored.gist(refusal)
        hand = Hand(stored.chat, NOW)
        (chapter,) = chapter_rows.all_chapters(connection, stored.chat.pk)
        (gist,) = gist_rows.all_gists(connection, stored.chat.pk)
        with pytest.raises(Conflict, match="nothing but a refusal"):
            pins.pin_chapter(connection, hand, FILE, chapter)
        with pytest.raises(Conflict, match="nothing but a refusal"):
            pins.pin_gist(connection, hand, FILE, gist)
        stored.version(refusal, "owner")  # brought back: still the model's words
        (chapter,) = chapter_rows.all_chapters(connection, stored.chat.pk)
        with pytest.raises(Conflict, match="nothing but a refusal"):
            pins.pin_chapter(connection, hand, FILE, chapter)
        own = f"{refusal} ({said})"
        stored.version(own, "owner")
        (chapter,) = chapter_rows.all_chapters(connection, stored.chat.pk)
        pins.pin_chapter(connection, hand, FILE, chapter)
        assert [one["text"] for one in stored.memory()["notes"]] == [own], "the owner's words"


def test_what_is_pinned_follows_the_stand_in(house: House) -> None:
    """It was pinned before the judge knew better: a scrub leaves no copy of it."""
    said, reply, *_ = TALES["en"]
    with house.store._writer.begin() as connection:
        stored = Stored(connection, said, reply)
        lie = "Boris sailed to Lisbon with 400 soldiers and burned the harbour down."
        stored.version(lie)
        stored.gist(lie)
        hand = Hand(stored.chat, NOW)
        (chapter,) = chapter_rows.all_chapters(connection, stored.chat.pk)
        (gist,) = gist_rows.all_gists(connection, stored.chat.pk)
        pins.pin_chapter(connection, hand, FILE, chapter)
        pins.pin_gist(connection, hand, FILE, gist)
        assert {one.kind for one in stored.scrub()} == {"chapter", "gist"}
        memory = stored.memory()
        (chapter_now,), (gist_now,) = memory["chapters"], memory["gists"]
        assert (chapter_now["pinned"], gist_now["pinned"]) == (True, True)
        texts = {one["text"] for one in memory["notes"] if one["pinned"]}
        assert texts == {chapter_now["text"], gist_now["text"]}
        assert lie not in texts
