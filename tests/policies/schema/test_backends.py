import pytest
from pydantic import TypeAdapter, ValidationError

from policies.schema import LiteLLMBackend, LlamaCppBackend, ScriptedBackend, Timeouts
from policies.schema.backends import AnyKind

LOCAL = "http://127.0.0.1:8080"


def test_the_defaults_of_a_llama_server():
    backend = LlamaCppBackend(url=LOCAL)
    assert (backend.slots, backend.window, backend.model) == ("shared", None, None)
    assert (backend.image_chars, backend.max_output, backend.strict_roles) == (3_000, 4_096, False)
    times = backend.timeouts
    assert (times.connect, times.first_token, times.idle, times.total) == (5, 300, 120, 1_800)
    assert backend.off_reason is None


def test_the_defaults_of_the_scripted_backend():
    backend = ScriptedBackend()
    assert (backend.seed, backend.refusals, backend.truncations) == (7, 11.0, 3.0)
    assert (backend.latency, backend.window, backend.strict_roles) == (0.05, None, False)
    assert backend.is_local
    assert backend.off_reason is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"idle": "2m", "total": "1m"}, "idle must not be longer than total: 120 s is longer"),
        ({"idle": "31m"}, "1,860 s is longer than 1,800 s"),  # the total of its default
        ({"first_token": "90s", "total": "1m"}, "first_token must not be longer than total: 90 s"),
    ],
)
def test_a_wait_that_could_never_pass_is_refused(written, said):
    with pytest.raises(ValidationError, match=said):
        Timeouts(**written)


@pytest.mark.parametrize(
    "written", [{"total": "10s"}, {"idle": "1m", "first_token": "1m", "total": "1m"}]
)
def test_a_short_whole_needs_no_other_wait_to_be_written(written):
    assert Timeouts(**written).idle in (120, 60)


def test_slots_that_the_server_chooses_cannot_be_kept_free():
    with pytest.raises(ValidationError, match="background_slots needs slots: pinned"):
        LlamaCppBackend(url=LOCAL, background_slots=0)
    assert LlamaCppBackend(url=LOCAL, background_slots=None).slots == "shared"
    assert LlamaCppBackend(url=LOCAL, slots="pinned", background_slots=0).background_slots == 0


@pytest.mark.parametrize("key", [None, ""])
def test_a_cloud_backend_without_its_key_is_off_and_says_so(key):
    backend = LiteLLMBackend(model="deepseek/deepseek-v4-flash", api_key=key)
    assert backend.api_key is None
    assert backend.off_reason == "its api_key is not set"
    assert not backend.is_local


def test_a_cloud_backend_with_its_key_is_on_and_never_prints_it():
    backend = LiteLLMBackend(model="deepseek/deepseek-v4-flash", api_key="sk-geheim")
    assert backend.off_reason is None
    assert backend.api_key.get_secret_value() == "sk-geheim"
    assert (backend.window, backend.reasoning, backend.strict_roles) == (1_000_000, "drop", True)
    assert "geheim" not in repr(backend) + str(backend.model_dump()) + backend.model_dump_json()


def test_an_empty_key_of_a_llama_server_is_none():
    assert LlamaCppBackend(url=LOCAL, api_key="").api_key is None


@pytest.mark.parametrize(
    ("url", "local", "expected"),
    [
        (LOCAL, None, True),
        ("http://127.8.9.1", None, True),
        ("http://LOCALHOST:8080/llama", None, True),
        ("http://[::1]:8080", None, True),
        ("http://192.168.1.20:8080", None, False),
        ("http://127.0.0.1.example.com", None, False),
        ("http://llama-server:8080", None, False),
        ("http://llama-server:8080", True, True),
        (LOCAL, False, False),
    ],
)
def test_only_loopback_is_this_machine_unless_the_owner_says_so(url, local, expected):
    assert LlamaCppBackend(url=url, local=local).is_local is expected


def test_the_kind_decides_what_a_backend_may_hold():
    adapter = TypeAdapter(AnyKind)
    backend = adapter.validate_python({"kind": "scripted", "latency": "1s"})
    assert backend == ScriptedBackend(latency=1.0)
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python({"kind": "scripted", "slots": "shared"})
    assert caught.value.errors()[0]["type"] == "extra_forbidden"


def test_nothing_of_a_backend_can_be_changed_afterwards():
    with pytest.raises(ValidationError):
        ScriptedBackend().seed = 8
