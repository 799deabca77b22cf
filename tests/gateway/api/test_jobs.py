"""/api/jobs of one piece of work, within its owner."""

from __future__ import annotations

from sqlalchemy import Connection

from tests.gateway.api.conftest import Opener
from tests.gateway.seeds import add_conversation, add_memory, talk

KEYS = {"KEY-ADA": "ada", "KEY-BEN": "ben"}


# Not due while the test runs, and of the chapter that its key names.
_SETTLE = (
    "UPDATE jobs SET run_at_ms = 32503680000000,"
    " payload = json_object('chapter', CAST(substr(key, 9) AS INTEGER))"
)


def seed(connection: Connection) -> str:
    made, nodes = add_conversation(connection, talk(3), owner="ada")
    add_memory(connection, made, nodes, text="港の灯台")
    connection.exec_driver_sql(_SETTLE)
    return made.id


async def test_one_job(opened: Opener) -> None:
    async with opened(keys=KEYS) as door:
        conversation = door.store.writing(seed)
        (listed,) = (await door.get("/api/jobs", "KEY-ADA")).json()["jobs"]
        address = f"/api/jobs/{listed['id']}"
        told = (await door.get(address, "KEY-ADA")).json()
        assert {name: told[name] for name in listed} == listed
        assert told["conversation"] == conversation
        assert (told["cause"], told["backend"]) == ("refusal", "local-glm")
        assert (told["chapter"]["first"], told["chapter"]["last"]) == (3, 4)
        assert told["history"] == [
            {
                "at": "2023-11-14T22:13:20.000Z",
                "what": "refused",
                "backend": "local-glm",
                "reasons": ["refusal"],
            }
        ]
        assert "灯台" not in str(told)


async def test_changes_and_whose_they_are(opened: Opener) -> None:
    async with opened(keys=KEYS) as door:
        rung: list[int] = []
        door.context.ring = rung.append
        door.store.writing(seed)
        (listed,) = (await door.get("/api/jobs", "KEY-ADA")).json()["jobs"]
        address = f"/api/jobs/{listed['id']}"

        async def change(what: str, key: str, at: str = address) -> tuple[int, dict[str, object]]:
            headers = {"authorization": f"Bearer {key}"}
            answer = await door.client.post(f"{at}/{what}", headers=headers)
            return answer.status_code, answer.json()

        for what in ("cancel", "retry", "run"):
            code, told = await change(what, "KEY-BEN")
            unknown = await change(what, "KEY-BEN", "/api/jobs/chapter:99")
            assert code == unknown[0] == 404
            assert str(told).replace(listed["id"], "chapter:99") == str(unknown[1])
        assert (await door.get(address, "KEY-BEN")).status_code == 404
        code, told = await change("cancel", "KEY-ADA")
        assert (code, told["state"], told["cause"]) == (200, "parked", "cancelled")
        assert rung == []
        code, told = await change("run", "KEY-ADA")
        assert (code, "was given up" in str(told)) == (409, True)
        code, told = await change("retry", "KEY-ADA")
        assert (code, told["state"], told["attempts"], told["error"]) == (200, "queued", 0, None)
        assert len(rung) == 1
        door.store.writing(lambda connection: connection.exec_driver_sql(_SETTLE))
        code, told = await change("run", "KEY-ADA")
        assert (code, told["state"], told["attempts"]) == (200, "queued", 0)
        assert told["run_at"] < "2100"
        assert len(rung) == 2
        door.store.writing(
            lambda connection: connection.exec_driver_sql("UPDATE jobs SET state = 'done'")
        )
        for what in ("cancel", "retry", "run"):
            assert (await change(what, "KEY-ADA"))[0] == 409
