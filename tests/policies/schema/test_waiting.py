"""What a file asks for and this version does not do is named, key by key."""

from policies.schema import LlamaCppBackend, Model, Policy, PolicyFile, Recall, Tier, find_waiting


def _file(policy: Policy) -> PolicyFile:
    backend = LlamaCppBackend.model_validate({"url": "http://127.0.0.1:8080", "slots": "pinned"})
    return PolicyFile(
        backends={"local": backend},
        policies={"fold": policy},
        models={"m": Model(tiers=(Tier(backend="local", policy="fold"),))},
    )


def test_what_is_left_out_is_not_mentioned() -> None:
    assert find_waiting(_file(Policy(keep_warm=True))) == []
    assert find_waiting(_file(Policy(recall=Recall(budget=900)))) == []


def test_each_waiting_key_is_named() -> None:
    assert find_waiting(_file(Policy(ttl=86_400.0))) == [
        "policies.fold.ttl has no effect yet; nothing is deleted by age",
    ]
