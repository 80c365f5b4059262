"""Why runs end: the data file holds together, names come before texts, and a text needs the words of a failure."""

from __future__ import annotations

import time
from importlib import resources
from typing import Any

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.taxonomy import OWNERS, Cause, Observation, cause, causes, classify, matched, named
from faultbook.yamlfile import parse_yaml

DATA: dict[str, Any] = parse_yaml(
    resources.files("faultbook").joinpath("taxonomy.yaml").read_text(encoding="utf-8"), "taxonomy.yaml"
)
RULES: list[dict[str, Any]] = DATA["rules"]
TYPED = [(vocabulary, name, target) for vocabulary, names in DATA["typed"].items() for name, target in names.items()]

# The table of termination kinds with `retryable` of the omk repository (session-termination.ts, schema version 1).
RETRYABLE = {
    "completed": False,
    "user_abort": False,
    "provider_abort": True,
    "provider_auth": False,
    "provider_rate_limit": True,
    "provider_network": True,
    "provider_protocol": True,
    "provider_refusal": True,
    "context_overflow": True,
    "transcript_invalid": False,
    "tool_timeout": True,
    "tool_fatal": False,
    "compaction": True,
    "persistence": True,
    "process_signal": False,
    "process_crash": True,
    "configuration.invalid": False,
    "unclassified": False,  # internal.unclassified
}

# What Harbor 0.25's error policy (models/trial/error_policy.py) says of each exception: whose failure it is.
HARBOR_POLICY = {
    "sandbox_failed": """EnvironmentStartTimeoutError SandboxBuildFailedError AgentSetupTimeoutError HealthcheckError
        SandboxLikelyOutOfMemoryError MemoryLimitExceededError SSHAccessError GKEExecStreamClosedError
        GKEPodNotFoundError RuntimeRequestError AddTestsDirError DownloadVerifierDirError""",
    "model_provider_failed": """ApiError ApiRateLimitError ApiInternalServerError ApiOverloadedError
        ApiConnectionClosedError ApiResponseStalledError UnknownApiError NetworkConnectionError ApiConnectionError
        ApiUsageLimitError RateLimitError InternalServerError ServiceUnavailableError APIConnectionError APIError
        Timeout BadRequestError UnprocessableEntityError UnsupportedParamsError APIResponseValidationError
        BudgetExceededError AgentAuthenticationError ModelNotFoundError ApiProviderResourceNotFoundError
        AuthenticationError PermissionDeniedError NotFoundError""",
    "harbor_failed": """ServiceOperationsUnsupportedError VercelScopeError DspyImportError MissingExtraError
        RegradeError""",
    "unclassified": "NonZeroAgentExitCodeError",
    "agent_exhausted_budget": """AgentTimeoutError ContextWindowExceededError OutputTokenExceededError
        ContextLengthExceededError OutputLengthExceededError""",
    "agent_refused_task": "AgentSafetyRefusalError ContentPolicyViolationError",
    "verifier_failed": """VerifierTimeoutError RewardFileNotFoundError RewardFileEmptyError
        VerifierOutputParseError""",
    "cancelled": "CancelledError",
}
OWNERS_OF_POLICY = {
    "sandbox_failed": {"environment"},
    "model_provider_failed": {"provider"},
    "harbor_failed": {"environment", "verifier"},
    "unclassified": {"unknown"},
    "agent_exhausted_budget": {"agent", "harness"},
    "agent_refused_task": {"agent"},
    "verifier_failed": {"verifier"},
    "cancelled": {"operator"},
}

# By rule: texts as clients, command lines and engines write them. The first rule that matches must be this one.
TEXTS: dict[str, list[str]] = {
    "contract denial": [
        "provider_denied (contract-violation): image input is not in the model's contract",
        "request denied by the model contract before anything was sent; last status 429 Too Many Requests",
    ],
    "context overflow": [
        "Error code: 400 - {'error': {'code': 'context_length_exceeded', 'type': 'invalid_request_error'}}",
        "This model's maximum context length is 128000 tokens; your messages have 131072",
        "Your input exceeds the context window of this model.",
        "API Error: 400 input length and max_tokens exceed context limit: 180000 + 32000 > 200000",
        'API Error: 400 {"error":{"type":"invalid_request_error","message":"prompt is too long: 201337 tokens"}}',
        "ValidationException: Input is too long for requested model.",
        "400 INVALID_ARGUMENT: The input token count (1204981) exceeds the maximum number of tokens allowed",
        "the conversation exceeds the model's maximum token limit",
        "Please reduce the length of the messages.",
        "litellm.ContextWindowExceededError: AnthropicError - quota untouched",
    ],
    "refusal": [
        "litellm.ContentPolicyViolationError: the image was not generated",
        "The response was filtered: the prompt triggered Azure OpenAI's content management policy",
        "Output blocked by content filtering policy",
        '{"choices": [{"finish_reason": "content_filter"}]}',
        "candidate 0 has finish_reason: SAFETY and no text",
        '{"stop_reason": "refusal", "content": []}',
        "Your request was rejected as a result of our safety system.",
        "Claude Code is unable to respond to this request, which appears to violate our Usage Policy",
        "this request was flagged for possible cybersecurity risk",
    ],
    "container engine": [
        "Error response from daemon: unauthorized: authentication required",
        "Error response from daemon: client version 1.24 is too old",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
        "Docker compose command failed for environment t1. Return code: 1. Stderr: 503 Service Unavailable",
        "ERROR: failed to solve: python:3.12: 403 Forbidden",
        "failed to pull image ghcr.io/x/y:z",
        "toomanyrequests: You have reached your unauthenticated pull rate limit.",
        "pod t1-0: ImagePullBackOff",
    ],
    "client version": [
        "client version 0.9 is no longer accepted: unsupported",
        "The model needs another CLI. Please upgrade to the latest app or CLI and try again.",
        "It looks like your version of Claude Code (1.0.2) needs an update.",
    ],
    "disk": [
        "OSError: [Errno 28] No space left on device: '/logs/agent/trajectory.json'",
        "sqlite3.OperationalError: database or disk is full",
        "mkdir: cannot create directory '/logs': Read-only file system",
        "OSError: [Errno 122] Disk quota exceeded",
    ],
    "quota": [
        "Error code: 429 - {'error': {'code': 'insufficient_quota', 'message': 'You exceeded your current quota'}}",
        "You exceeded your current quota, please check your plan and billing details.",
        "API Error: 400 You have reached your specified API usage limits.",
        "429 Quota exceeded for quota metric 'generate requests'",
        '{"error":{"type":"usage_limit_reached","plan_type":"team"}}',
        "Claude AI usage limit reached|1753088400",
        "You've hit your usage limit. Upgrade to Pro or try again in 3 days.",
        "You've hit your limit · resets 8am (Europe/London)",
        "5-hour limit reached ∙ resets 3pm",
        "402 Client Error: Payment Required for url: https://openrouter.ai/api/v1/chat/completions",
        "AI_APICallError: statusCode: 402",
        "You are out of extra usage",
        "You have no credits remaining",
        "API Error: 400 Your credit balance is too low to access the Anthropic API.",
        '403 {"error":{"type":"billing_error"}}',
        "Billing hard limit has been reached",
        "API Error: 403 Key limit exceeded (total limit)",
        "Budget has been exceeded! Current cost: 12.1, Max budget: 10.0",
        "Your account has an unpaid invoice",
    ],
    "rate limit": [
        "litellm.RateLimitError: AnthropicException - slow down",
        "Error code: 429 - {'error': {'type': 'rate_limit_error'}}",
        "stream disconnected before completion: Rate limit is exceeded. Try again in 17 seconds.",
        "Rate limit reached for organization org-x on tokens per min (TPM): Limit 250000, Used 250000",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
        "you are being rate limited",
        "last status: 429 Too Many Requests, giving up after 5 retries; next 401 Unauthorized",
        "openai.APIStatusError: HTTP 429",
        "ThrottlingException: Too many tokens, please wait before trying again.",
        'API Error (529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})',
        "API Error: Overloaded",
        "503 The model is overloaded. Please try again later.",
        "botocore ... ThrottledException",
        "AGY_ERROR: status RESOURCE_EXHAUSTED",
    ],
    "authentication": [
        "exceeded retry limit, last status: 401, request id: 9a57",
        "401 Unauthorized",
        "wire says 403 Forbidden for POST https://api.example.com/v1/messages",
        "401 Client Error for url https://api.example.com/v1/chat/completions",
        '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
        "litellm.AuthenticationError: no key for the provider",
        "PermissionDeniedError: your account may not use this model",
        "Incorrect API key provided: sk-...abcd",
        "API key not valid. Please pass a valid one.",
        "The api_key client option must be set either by an argument or by OPENAI_API_KEY",
        "Invalid bearer token",
        "OAuth token has expired",
        "google: Request had invalid authentication credentials",
        "NoCredentialsError: Unable to locate credentials",
        "The security token included in the request is expired",
        "Not logged in · Please run /login",
    ],
    "server error": [
        "Error code: 500 - the request was not served",
        "API Error: 524 a timeout occurred at the proxy",
        "unexpected status 502",
        "litellm.InternalServerError: AnthropicException",
        "upstream said Bad Gateway",
        "litellm.ServiceUnavailableError: try later",
        "HTML page: 504 Gateway Time-out",
        "The server had an error while processing your request. Sorry about that!",
        '{"type":"error","error":{"type":"api_error","message":"unexpected"}}',
    ],
    "orphaned tool call": [
        "Error code: 400 - An assistant message with 'tool_calls' must be followed by tool messages",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "No tool call found for function call output with call_id call_1",
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after",
        "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks",
        "The following tool_call_ids did not have response messages: call_9",
    ],
    "bad request": [
        "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'max_tokens'}}",
        "litellm.BadRequestError: OpenAIException",
        "API Error: 413 request too large",
        "litellm.UnsupportedParamsError: reasoning_effort",
        '{"error":{"type":"not_found_error","message":"model: no-such"}}',
        "The model `no-such` does not exist or you do not have access to it.",
    ],
    "tool timeout": [
        "tool 'bash' timed out after 120 s and was not answered",
        "ToolTimeoutError: bash",
        "Command timed out after 600 seconds",
    ],
    "tool failure": [
        "fatal tool error: the shell is gone",
        "the run stops: tool execution failed",
        "MCP server 'browser' exited before it answered",
    ],
    "cancelled": [
        "asyncio.exceptions.CancelledError",
        "the job was cancelled",
        "cancelled by the scheduler",
        "rpc error: context canceled",
        "Cancelled.",
    ],
    "interrupt": [
        "KeyboardInterrupt",
        "Request interrupted by user",
        "APIUserAbortError: the request ended",
    ],
    "signal": [
        "Command 'agent' died with <Signals.SIGKILL: 9>.",
        "child terminated by signal SIGTERM",
        "killed by signal 9",
        "Out of memory: Killed process 4242 (node) total-vm:9000000kB",
        "container state: OOMKilled",
        "Command failed (exit 137): claude --print\nstdout: \nstderr: ",
        "exited with code 143",
    ],
    "sandbox": [
        "Daytona: failed to create a workspace",
        "Environment start timed out after 600 seconds",
        "Agent setup timed out after 360 seconds",
        "the sandbox of this trial was lost",
        "container abc is not running",
        "Sandbox with ID 1f2e not found",
        "No such container: 1f2e",
        "could not go on: failed to launch the container",
    ],
    "verifier": [
        "Verifier execution timed out after 900 seconds",
        "reward file /logs/verifier/reward.txt is missing",
    ],
    "network": [
        "Connection refused",
        "API Error: Connection closed mid-response",
        "connect ECONNRESET 10.0.0.1:443",
        "ConnectionResetError: [Errno 104] by peer",
        "openai.APIConnectionError: the API was not reached",
        "APITimeoutError",
        "httpx.ReadTimeout",
        "litellm: Request timed out. (timeout=600.0)",
        "socket hang up",
        "TypeError: fetch failed",
        "OSError: [Errno 101] Network is unreachable",
        "connect: no route to host",
        "[Errno -3] Temporary failure in name resolution",
        "curl: (6) Could not resolve host: api.openai.com",
        "CERTIFICATE_VERIFY_FAILED: certificate verify failed: self-signed certificate",
        "TLS handshake failed",
        "SSL_ERROR_SYSCALL in connection to api",
        "Server disconnected without sending a response.",
        "httpx.RemoteProtocolError: peer went away",
        "API Error: Response stalled mid-stream",
    ],
    "agent's limit": [
        "maximum number of turns (50) reached",
        "Agent reached maximum iteration. Current iteration: 100",
        "Turn limit of 40 reached",
        '{"type":"result","subtype":"error_max_turns","num_turns":51}',
        "the step budget was exhausted",
        "Agent execution timed out after 900.0 seconds",
        "AgentTimeoutError",
        "agent_timeout",
        "the response exceeded the 32000 output token maximum",
    ],
    "crash": [
        "agent process exited with code 1",
        "subprocess: returned non-zero exit status 3.",
        "Segmentation fault (core dumped)",
        "fatal: received no more input, SIGSEGV",
        "Command failed (exit 139): ./agent",
        "FATAL ERROR: Reached heap limit - JavaScript heap out of memory",
        'Traceback (most recent call last):\n  File "agent.py", line 3, in main\nKeyError: 7',
    ],
}

# What an agent's transcript, its settings or its task may well hold, and what is no failure of anything here.
NO_CAUSE = [
    "",
    "done",
    "Command failed (exit 1): claude --print --max-turns 50\nstdout: \nstderr: ",
    "the exit code alone: exited with code 0",
    '"modelUsage":{"m":{"inputTokens":9,"contextWindow":200000,"maxOutputTokens":64000}}',
    '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","overageDisabledReason":"out_of_credits"}}',
    '{"type":"token_count","rate_limits":{"primary":{"used_percent":12.0}}}',
    '{"type":"tool_result","tool_use_id":"toolu_01","is_error":false,"content":"ok"}',
    '{"role":"tool","tool_call_id":"call_1","content":"2 files"}',
    '"content_filter_results":{"hate":{"filtered":false}}',
    "settings: timeout=900, tool_timeout_sec=60, max_iterations=500, context_window=128000",
    "error: call of overloaded 'f(int)' is ambiguous",
    "main.py line 402: 429 rows, 500 columns, 503 warnings",
    "listening on port 5000, took 402 ms",
    "assert status == 5029",
    "curl: (22) The requested URL returned error: 403",
    "Task: configure nginx with TLS 1.3 and a DNS record, then open a socket on port 443",
    "Task: write a rate limiter, a billing page and a form for authentication",
    "Task: fix the order page, where an order is cancelled twice",
    "Access to fetch has been blocked by CORS policy",
    "Content-Security-Policy: default-src 'self'",
    "SyntaxError: invalid token (<string>, line 1)",
    "PermissionError: [Errno 13] Permission denied: '/root/x'",
    "FATAL: password authentication failed for user 'postgres'",
    "the API key is valid and was stored",
    "send SIGTERM to the process and trap SIGINT",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB",
    "lbfgs failed to converge: increase max_iter; total no. of iterations reached limit",
    "RecursionError: maximum recursion depth exceeded",
    "Time Limit Exceeded on test 4",
    "TimeoutError",
    "the build tool wrote 0 errors",
    "12 tests failed",
    "the modal dialog does not open: element not found",
    "failed to create virtual environment",
    "environment variable FOO is not set",
    "docker build finished, no error",
    "Traceback shows nothing new",
    "cat /etc/network/interfaces",
    "the sorting network is correct",
]


# --- the data file


def test_each_cause_stands_in_the_order_of_precedence_once() -> None:
    assert sorted(DATA["precedence"]) == sorted(causes())
    assert DATA["precedence"][0] == "configuration.invalid"
    assert DATA["precedence"][-2:] == ["unclassified", "completed"]


def test_causes_are_whole() -> None:
    for name, found in causes().items():
        assert (found.name, found == cause(name)) == (name, True)
        assert found.owner in OWNERS
        assert isinstance(found.retryable, bool)
        assert found.meaning == found.meaning.strip() != ""
    assert {found.owner for found in causes().values()} == set(OWNERS)


@pytest.mark.parametrize(("name", "retryable"), RETRYABLE.items())
def test_retryable_is_as_published(name: str, retryable: bool) -> None:
    assert cause(name).retryable is retryable


def test_a_copy_is_handed_out() -> None:
    causes().clear()
    assert cause("completed") in causes().values()


def test_names_and_rules_lead_to_causes_that_exist() -> None:
    assert {target for *_, target in TYPED} <= set(causes())
    assert {rule["cause"] for rule in RULES} <= set(causes())
    assert all(set(rule) == {"name", "cause", "patterns"} and rule["patterns"] for rule in RULES)
    assert len({rule["name"] for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(("vocabulary", "name", "target"), TYPED)
def test_a_name_is_observed(vocabulary: str, name: str, target: str) -> None:
    assert named(vocabulary, name) == target
    found = classify([Observation(vocabulary, name)])
    if target != "unclassified":
        assert (found.cause.name, found.source, found.others) == (target, "observed", ())


def test_what_follows_from_a_cause() -> None:
    assert cause("agent_budget_exhausted").verdict_stands is True
    assert cause("configuration.invalid").verdict_stands is True  # the harness's own doing
    assert cause("provider_quota").verdict_stands is False
    assert cause("unclassified").verdict_stands is None
    assert not cause("unclassified").is_infrastructure
    for found in causes().values():
        assert found.is_infrastructure == (found.verdict_stands is False)


def test_an_unknown_cause_is_named() -> None:
    with pytest.raises(ValueError, match="'provider_quotas'"):
        cause("provider_quotas")


@pytest.mark.parametrize(
    ("policy", "name"), [(p, name) for p, names in HARBOR_POLICY.items() for name in names.split()]
)
def test_harbor_and_we_agree_on_whose_failure_it_is(policy: str, name: str) -> None:
    found = cause(named("harbor", name) or "completed")
    assert found.owner in OWNERS_OF_POLICY[policy]
    # Harbor: "reward_valid" for the two causes of the agent's own, and not known for what is unclassified
    expected = {"agent_exhausted_budget": True, "agent_refused_task": True, "unclassified": None}
    assert found.verdict_stands is expected.get(policy, False)


# --- rules


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in TEXTS.items() for text in texts])
def test_a_text_is_read_by_its_rule_and_by_none_before_it(rule: str, text: str) -> None:
    expected = next(one["cause"] for one in RULES if one["name"] == rule)
    assert matched(text) == (expected, rule)
    assert matched(text.upper()) == (expected, rule)
    found = classify([Observation("harbor", "NonZeroAgentExitCodeError", text)])
    assert (found.cause.name, found.source, found.others) == (expected, "inferred", ())


@pytest.mark.parametrize("text", NO_CAUSE)
def test_what_only_sounds_like_a_failure_is_unclassified(text: str) -> None:
    assert matched(text) is None
    found = classify([Observation("harbor", "NonZeroAgentExitCodeError", text)])
    assert (found.cause.name, found.source) == ("unclassified", "observed")


def test_every_pattern_compiles_and_is_needed() -> None:
    options = re2.Options()
    options.case_sensitive = False
    assert [rule["name"] for rule in RULES] == list(TEXTS)
    for rule in RULES:
        for pattern in rule["patterns"]:
            compiled = re2.compile(pattern.replace("<status>", DATA["status"]), options)
            assert any(compiled.search(text) for text in TEXTS[rule["name"]]), (rule["name"], pattern)
            assert not compiled.search("")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("contract denial", "context overflow"),
        ("context overflow", "refusal"),
        ("refusal", "client version"),
        ("client version", "quota"),
        ("disk", "quota"),
        ("quota", "rate limit"),
        ("rate limit", "authentication"),
        ("authentication", "server error"),
        ("server error", "orphaned tool call"),
        ("orphaned tool call", "tool timeout"),
        ("tool timeout", "tool failure"),
        ("tool failure", "network"),
        ("sandbox", "network"),
        ("network", "crash"),
    ],
)
def test_the_order_of_rules_bears_load(first: str, second: str) -> None:
    """The order of session-failure-cause.ts of the omk repository, whichever stands first in the text."""
    names = [rule["name"] for rule in RULES]
    assert names.index(first) < names.index(second)
    for one in TEXTS[first][:2]:
        for other in TEXTS[second][:2]:
            for text in (f"{one}\n{other}", f"{other}\n{one}"):
                found = matched(text)
                assert found is not None
                assert names.index(found[1]) <= names.index(first), text


@pytest.mark.parametrize(
    "before", ['"', "'", "(", "status ", "HTTP/1.1 ", '"code": ', "<Response [", "Error: ", "error_code="]
)
@pytest.mark.parametrize(
    ("number", "expected"), [(402, "provider_quota"), (429, "provider_rate_limit"), (401, "provider_auth")]
)
def test_a_number_needs_a_word_before_it(before: str, number: int, expected: str) -> None:
    found = matched(f"{before}{number} x")
    assert found == (None if before in "\"'(" else (expected, found[1] if found else ""))
    assert matched(f"{before}1{number} x") is None
    assert matched(f"{before}{number}7 x") is None


def test_only_the_end_of_a_long_text_is_looked_at() -> None:
    noise = "line of a log\n" * 10_000
    assert matched(f"{noise}402 Payment Required") == ("provider_quota", "quota")
    assert matched(f"402 Payment Required\n{noise}") is None


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10_000_000 + "!",
        "tool " * 2_000_000,
        "exceeded your " * 700_000,
        "model " * 1_700_000,
        "\n(error " * 1_200_000,
        "connection reset" * 600_000 + "é",
    ],
    ids=lambda text: text[:14].strip(),
)
def test_ten_megabytes_are_read_in_no_time(text: str) -> None:
    classify([Observation("harbor", "NonZeroAgentExitCodeError", "warm")])
    begun = time.process_time()
    classify([Observation("harbor", "NonZeroAgentExitCodeError", text)])
    assert time.process_time() - begun < 1  # measured: 0.01 to 0.05 s; a backtracking engine would not come back


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60), st.text(max_size=10))
@example("\ud800 402 Payment Required", "\udfff")
@example("\0\0HTTP 429\0", "")
def test_no_text_is_too_odd(text: str, name: str) -> None:
    found = classify([Observation("harbor", name or None, text)])
    assert isinstance(found.cause, Cause)
    assert found.source in ("observed", "inferred")


def test_half_a_surrogate_pair_hides_nothing() -> None:
    assert matched("\ud83d 402 Payment Required \ude00") == ("provider_quota", "quota")


# --- which of several


def observed(name: str) -> Observation:
    """An observation of our own runtime: it says the cause by name."""
    return Observation("runtime", name)


def test_nothing_on_record_means_completed() -> None:
    assert classify([]).cause.name == "completed"
    assert (classify([]).source, classify([]).others) == ("observed", ())
    assert classify(iter([])).cause.name == "completed"


@pytest.mark.parametrize("name", [None, "", "Odd", "x.y.z", "OddError"])
@pytest.mark.parametrize("text", [None, "", "all is well"])
def test_an_end_that_nothing_is_known_of_is_not_a_success(name: str | None, text: str | None) -> None:
    found = classify([Observation("harbor", name, text)])
    assert (found.cause.name, found.source) == ("unclassified", "inferred")


@pytest.mark.parametrize(
    "name", ["RateLimitError", "litellm.RateLimitError", "litellm.exceptions.RateLimitError", "a.b.c.RateLimitError"]
)
def test_dotted_names_count_by_their_last_part(name: str) -> None:
    found = classify([Observation("harbor", name, "insufficient_quota")])
    assert (found.cause.name, found.source, found.others) == ("provider_rate_limit", "observed", ())


def test_a_name_of_another_vocabulary_is_not_known() -> None:
    assert named("terminal-bench", "AgentTimeoutError") is None
    assert named("no-such", "AgentTimeoutError") is None
    assert named("harbor", "agent_timeout") is None
    assert named("harbor", "provider_quota") is None  # causes by name are of our runtime alone
    assert all(named("runtime", name) == name for name in causes())


def test_names_come_before_texts() -> None:
    text = "402 Payment Required; contract-violation; context_length_exceeded"
    found = classify([Observation("harbor", "AgentTimeoutError", text)])
    assert (found.cause.name, found.source, found.others) == ("agent_budget_exhausted", "observed", ())
    found = classify([Observation("harbor", None, text), Observation("harbor", "VerifierTimeoutError")])
    assert (found.cause.name, found.source, found.others) == ("verifier_failed", "observed", ("configuration.invalid",))


def test_a_name_that_says_nothing_is_read_by_its_text() -> None:
    found = classify([Observation("harbor", "NonZeroAgentExitCodeError", "stderr: API Error: 402 Payment Required")])
    assert (found.cause.name, found.source, found.others) == ("provider_quota", "inferred", ())
    found = classify([Observation("terminal-bench", "unknown_agent_error", "Connection refused")])
    assert (found.cause.name, found.source) == ("provider_network", "inferred")


def test_an_unknown_name_is_itself_a_text_if_the_text_says_nothing() -> None:
    found = classify([Observation("inspect", "APITimeoutError", "the request took too long")])
    assert (found.cause.name, found.source) == ("provider_network", "inferred")
    found = classify([Observation("inspect", "APITimeoutError", "Error code: 429")])
    assert found.cause.name == "provider_rate_limit"


@given(st.lists(st.sampled_from(sorted(causes())), max_size=6))
def test_an_observed_contract_denial_comes_first_whatever_else_is_there(names: list[str]) -> None:
    texts = [Observation("harbor", None, texts[0]) for texts in TEXTS.values()]
    for denial in ("contract-violation", "configuration.invalid"):
        found = classify([*map(observed, names), *texts, observed(denial)])
        assert (found.cause.name, found.source) == ("configuration.invalid", "observed")
        assert "configuration.invalid" not in found.others


@given(st.lists(st.sampled_from(sorted(causes())), min_size=1, max_size=6), st.randoms())
def test_the_primary_cause_is_the_first_by_precedence_in_any_order(names: list[str], random: Any) -> None:
    found = classify(map(observed, names))
    ranked = sorted(set(names), key=DATA["precedence"].index)
    assert found.cause.name == ranked[0]
    assert found.others == tuple(name for name in ranked[1:] if name != "completed")
    random.shuffle(names)
    assert classify(map(observed, names)) == found


def test_several_observations_are_one_cause_and_others_each_once() -> None:
    several = [
        Observation("harbor", "VerifierTimeoutError"),
        Observation("harbor", "RateLimitError"),
        Observation("harbor", "litellm.RateLimitError"),
        Observation("harbor", None, "Error code: 429"),
        Observation("harbor", "NonZeroAgentExitCodeError", "nothing"),
    ]
    found = classify(several)
    assert (found.cause.name, found.source) == ("provider_rate_limit", "observed")
    assert found.others == ("verifier_failed", "unclassified")
    assert classify(reversed(several)) == found


def test_an_end_of_its_own_gives_way_to_what_a_text_tells() -> None:
    success = Observation("terminal-bench", "unset")
    assert classify([success]).cause.name == "completed"
    found = classify([success, Observation("terminal-bench", None, "402 Payment Required")])
    assert (found.cause.name, found.source, found.others) == ("provider_quota", "inferred", ())
    found = classify([success, Observation("terminal-bench", "agent_timeout")])
    assert (found.cause.name, found.source, found.others) == ("agent_budget_exhausted", "observed", ())
