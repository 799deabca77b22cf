"""Lookups: what may be written, and whose conversations they may hear of."""

import pytest
from pydantic import ValidationError

from policies.schema import (
    FAULTS,
    LlamaCppBackend,
    Lookup,
    Model,
    Policy,
    PolicyFile,
    Recall,
    Tier,
)


def whole(recall, **lookups):
    return PolicyFile(
        backends={"glm": LlamaCppBackend(url="http://127.0.0.1:8080")},
        policies={"fold": Policy(recall=recall)},
        lookups=lookups,
        models={"chat": Model(tiers=(Tier(backend="glm", policy="fold"),))},
    )


def faults(recall, **lookups):
    with pytest.raises(ValidationError) as caught:
        whole(recall, **lookups)
    (error,) = caught.value.errors()
    assert error["type"] == FAULTS
    return error["ctx"]["faults"]


CRM = Lookup(url="http://127.0.0.1:9000/notes")


def test_what_is_left_out_has_a_default():
    assert (CRM.timeout, CRM.budget, CRM.headers, CRM.local) == (2.0, 800, {}, None)
    assert whole(Recall(lookups=("crm",)), crm=CRM).lookups == {"crm": CRM}


@pytest.mark.parametrize(
    ("url", "local", "expected"),
    [
        ("http://127.0.0.1:9000/notes", None, True),
        ("http://[::1]/notes", None, True),
        ("http://localhost/notes", None, True),
        ("http://crm.example/notes", None, False),
        ("http://crm.example/notes", True, True),
        ("http://127.0.0.1/notes", False, False),
    ],
)
def test_what_stays_on_this_machine(url, local, expected):
    assert Lookup(url=url, local=local).is_local is expected


def test_credentials_in_an_address_belong_into_headers():
    with pytest.raises(ValidationError) as caught:
        Lookup(url="https://ben:secret@crm.example/notes")
    (error,) = caught.value.errors()
    assert error["ctx"]["hint"].startswith("put the key into headers, such as {Authorization")
    assert "api_key" not in str(error["ctx"])


@pytest.mark.parametrize("name", ["", "with blank", "naïve", "colon:", "Host", "content-length"])
def test_a_header_that_cannot_be_sent_is_refused(name):
    with pytest.raises(ValidationError, match="header"):
        Lookup(url="http://127.0.0.1/x", headers={name: "v"})


@pytest.mark.parametrize("value", ["geheim\n", "schlüssel", "a\tb"])
def test_a_header_s_value_that_cannot_be_sent_is_refused_and_not_repeated(value):
    with pytest.raises(ValidationError) as caught:
        Lookup(url="http://127.0.0.1/x", headers={"x-key": value})
    assert "x-key" in str(caught.value)
    assert value.strip() not in str(caught.value)


def test_a_header_s_value_is_a_secret():
    lookup = Lookup(url="http://127.0.0.1/x", headers={"Authorization": "Bearer geheim"})
    assert "geheim" not in repr(lookup)
    assert "geheim" not in str(lookup.model_dump(mode="json"))
    assert lookup.headers["Authorization"].get_secret_value() == "Bearer geheim"


def test_a_lookup_that_is_not_there_is_refused_with_the_nearest_name():
    (fault,) = faults(Recall(lookups=("crmm",)), crm=CRM)
    assert fault.path == ("policies", "fold", "recall", "lookups", 0)
    assert fault.hint == "did you mean crm?"
    (fault,) = faults(Recall(lookups=("crm",)))
    assert fault.hint == "lookups has: nothing"


def test_a_lookup_is_named_once():
    (fault,) = faults(Recall(lookups=("crm", "crm")), crm=CRM)
    assert fault.message == "the lookup crm is named twice"


def test_lookups_without_a_budget_are_refused():
    (fault,) = faults(Recall(budget=0, lookups=("crm",)), crm=CRM)
    assert fault.message == "nothing that lookups find could be shown: recall.budget is 0"


def test_a_name_travels_in_a_header():
    (fault,) = faults(Recall(), **{"mein crm": CRM})
    assert fault.path == ("lookups", "mein crm")
