import pytest
from pydantic import ValidationError

from policies.schema import (
    FAULTS,
    Gist,
    LiteLLMBackend,
    LlamaCppBackend,
    Model,
    Policy,
    PolicyFile,
    Rule,
    ScriptedBackend,
    Summaries,
    Tier,
    View,
    When,
    find_faults,
)

LOCAL = LlamaCppBackend(url="http://127.0.0.1:8080")
CLOUD = LiteLLMBackend(model="deepseek/deepseek-v4-flash", api_key="k")


def whole(backends=None, policies=None, tiers=(("glm", "fold"),), **model):
    return PolicyFile(
        backends=backends or {"glm": LOCAL},
        policies=policies or {"fold": Policy()},
        models={"chat": Model(tiers=tuple(Tier(backend=b, policy=p) for b, p in tiers), **model)},
    )


def faults(*args, **kwargs):
    with pytest.raises(ValidationError) as caught:
        whole(*args, **kwargs)
    (error,) = caught.value.errors()
    assert error["type"] == FAULTS
    return error["ctx"]["faults"]


def test_a_policy_knows_the_name_that_the_file_gives_it():
    file = whole(policies={"fold": Policy(), "warm": Policy(keep_warm=True)})
    assert {name: policy.name for name, policy in file.policies.items()} == {
        "fold": "fold",
        "warm": "warm",
    }


@pytest.mark.parametrize("version", [2, 0, True, 1.0, "1", None])
def test_only_the_number_one_is_a_version(version):
    with pytest.raises(ValidationError, match="allowed is 1"):
        PolicyFile.model_validate(dict(whole()) | {"version": version})
    assert PolicyFile.model_validate(dict(whole()) | {"version": 1}) == whole()


def test_a_backend_that_is_not_there_is_refused_with_the_nearest_name():
    (fault,) = faults(tiers=[("glmm", "fold")])
    assert fault.path == ("models", "chat", "tiers", 0, "backend")
    assert fault.hint == "did you mean glm?"


def test_a_policy_that_is_not_there_is_refused_with_the_names_there_are():
    (fault,) = faults(tiers=[("glm", "zzz")])
    assert fault.path == ("models", "chat", "tiers", 0, "policy")
    assert fault.hint == "policies has: fold"


def test_a_summarizer_that_is_not_there_is_refused():
    policy = Policy(summaries=Summaries(backends=("glm", "claude")))
    (fault,) = faults(policies={"fold": policy})
    assert fault.path == ("policies", "fold", "summaries", "backends", 1)


def test_a_private_model_keeps_to_this_machine():
    assert whole(private=True).models["chat"].private
    scripted = {"glm": ScriptedBackend()}
    assert whole(backends=scripted, private=True).models["chat"].private


@pytest.mark.parametrize(
    ("tiers", "summarizers", "where"),
    [
        ((("glm", "fold"), ("deepseek", "fold")), (), (1, "backend")),
        ((("glm", "fold"),), ("glm", "deepseek"), (0, "policy")),
        ((("lan", "fold"),), (), (0, "backend")),
    ],
)
def test_a_private_model_that_would_leave_this_machine_is_refused(tiers, summarizers, where):
    backends = {
        "glm": LOCAL,
        "deepseek": CLOUD,
        "lan": LlamaCppBackend(url="http://10.0.0.5:8080"),
    }
    policies = {"fold": Policy(summaries=Summaries(backends=summarizers))}
    (fault,) = faults(backends=backends, policies=policies, tiers=tiers, private=True)
    assert fault.path == ("models", "chat", "tiers", *where)
    assert "off this machine" in fault.message
    assert whole(backends=backends, policies=policies, tiers=tiers)


def test_a_ceiling_that_no_text_could_fit_under_the_window_is_refused():
    # 56,000 characters / 4.5 a token at best = 12,444 tokens
    (fault,) = faults(backends={"glm": LlamaCppBackend(url=LOCAL.url, window=12_444)})
    assert fault.path == ("models", "chat", "tiers", 0, "policy")
    assert "56,000 characters / 4.5 a token at best = 12,444 tokens, window 12,444" in fault.message
    assert whole(backends={"glm": LlamaCppBackend(url=LOCAL.url, window=12_445)})


def test_a_ceiling_in_tokens_is_compared_as_it_is():
    view = View(unit="tokens", start=7_000, ceiling=8_192, headroom=2_000, keep=2_000)
    backends = {"glm": LlamaCppBackend(url=LOCAL.url, window=8_192)}
    (fault,) = faults(backends=backends, policies={"fold": Policy(view=view)})
    assert "ceiling 8,192 tokens, window 8,192" in fault.message


def test_a_ceiling_in_messages_is_left_to_the_check_of_each_call():
    view = View(unit="messages", start=40, ceiling=60, headroom=20, keep=10)
    backends = {"glm": LlamaCppBackend(url=LOCAL.url, window=512)}
    assert whole(backends=backends, policies={"fold": Policy(view=view)})


def test_names_travel_in_headers_and_are_refused_where_they_cannot():
    found = find_faults({"ローカル": LOCAL}, {"a b": Policy()}, {"-x": None, "glm-5.3:q4": None})
    assert [fault.path for fault in found] == [
        ("backends", "ローカル"),
        ("policies", "a b"),
        ("models", "-x"),
    ]


def test_what_is_itself_invalid_is_known_by_name_only():
    model = Model(tiers=(Tier(backend="glm", policy="fold"),), private=True)
    assert find_faults({"glm": None}, {"fold": None}, {"chat": model}) == []
    policy = Policy(summaries=Summaries(backends=("glm",)))
    assert find_faults({"glm": None}, {"fold": policy}, {"chat": model}) == []
    (fault,) = find_faults({}, {"fold": policy}, {})
    assert fault.hint == "backends has: nothing"


def test_numbers_that_are_not_sure_are_not_judged():
    tight = {"glm": LlamaCppBackend(url=LOCAL.url, window=1_000)}
    model = Model(tiers=(Tier(backend="glm", policy="fold"),))
    assert len(find_faults(tight, {"fold": Policy()}, {"chat": model})) == 1
    assert find_faults(tight, {"fold": Policy()}, {"chat": model}, unsure=["fold"]) == []


def test_a_tier_is_listed_once_and_one_is_needed():
    with pytest.raises(ValidationError, match="each tier is listed once"):
        whole(tiers=[("glm", "fold"), ("glm", "fold")])
    with pytest.raises(ValidationError):
        Model(tiers=())


def test_one_backend_under_two_policies_is_two_models():
    """Rules and routes name a tier by its backend: which of the two would be meant?"""
    with pytest.raises(ValidationError) as caught:
        whole(tiers=[("glm", "fold"), ("deepseek", "fold"), ("glm", "other")])
    (error,) = caught.value.errors()
    (fault,) = error["ctx"]["faults"]
    assert fault.path == ("tiers", 2, "backend")
    assert fault.message == "another tier of this model has the backend glm"
    assert "name a tier by its backend" in fault.hint


def test_a_model_is_found_by_its_name_and_by_its_aliases():
    file = whole(aliases=("talk", "foldgate/chat"))
    assert file.find_model("chat") is file.models["chat"]
    assert file.find_model("talk") is file.find_model("foldgate/chat") is file.models["chat"]
    assert file.find_model("chatt") is None
    assert file.model_names() == ["chat", "talk", "foldgate/chat"]


@pytest.mark.parametrize(
    ("aliases", "said"),
    [
        (("chat",), "the model chat is asked for by this name already"),
        (("a", "b", "a"), "the model chat is asked for by this name already"),
        (("ä",), "a name is 1 to 128 letters"),
    ],
    ids=["its own", "twice", "no header carries it"],
)
def test_an_alias_by_which_nobody_is_meant_is_refused(aliases, said):
    (fault,) = faults(aliases=aliases)
    assert fault.path == ("models", "chat", "aliases", len(aliases) - 1)
    assert said in fault.message


def test_an_alias_of_two_models_is_refused_at_the_second():
    model = Model(tiers=(Tier(backend="glm", policy="fold"),), aliases=("talk",))
    found = find_faults({"glm": LOCAL}, {"fold": Policy()}, {"one": model, "two": model})
    assert [fault.path for fault in found] == [("models", "two", "aliases", 0)]
    assert "the model one" in found[0].message


def test_what_a_rule_names_must_be_there():
    rules = (
        Rule(name="a", tier="deepseek"),
        Rule(name="b", tier="glm", when=When(model=("chat", "talk", "tolk"))),
        Rule(name="c", tier="glm", when=When(healthy=("glm", "x"), unhealthy=("deepseek", "gml"))),
    )
    backends = {"glm": LOCAL, "deepseek": CLOUD}
    found = faults(backends=backends, aliases=("talk",), rules=rules)
    assert [(fault.path[3:], fault.hint) for fault in found] == [
        ((0, "tier"), "the model has: glm"),
        ((1, "when", "model", 2), "did you mean talk?"),
        ((2, "when", "healthy", 1), "backends has: glm, deepseek"),
        ((2, "when", "unhealthy", 1), "did you mean glm?"),
    ]


def test_what_has_the_same_numbers_is_equal():
    assert whole() == whole(policies={"fold": Policy(gist=Gist(length=1_500))})
