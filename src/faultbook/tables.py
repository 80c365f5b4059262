"""The tidy tables that faultbook reads and writes: the one place where a column is defined."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.typing.pandas import Series

KINDS = (
    "count",
    "rate",
    "difference",
    "interval_low",
    "interval_high",
    "score",
    "p",
    "spread",
    "statistic",
    "quantity",
    "setting",
    "label",
)
QUALIFIERS = ("about", "at most", "at least")


class Reported(pa.DataFrameModel):
    """Numbers as a document prints them. One row, one printed cell.

    The key is (source, table, row, column); `id` joins the four with "/" and is how relations name a cell.
    """

    source: Series[str] = pa.Field(description="who prints it: a document, or 'second reading' and the like")
    table: Series[str] = pa.Field(description="the table or passage, as a short name")
    row: Series[str] = pa.Field(description="the row label")
    column: Series[str] = pa.Field(description="the column label")
    printed: Series[str] = pa.Field(description="the text exactly as printed")
    value: Series[float] = pa.Field(nullable=True, description="the number: rates in [0, 1], differences in pp")
    unit: Series[str] = pa.Field(description="'%', 'pp', 'count', 's', …; '1' for a pure number")
    n: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=1, description="the denominator, where stated")
    kind: Series[str] = pa.Field(isin=KINDS, description="what the number is; a 'label' is text, not a number")
    document: Series[str] = pa.Field(description="the document the number is about; the source unless given")
    section: Series[str] = pa.Field(description="where it stands in its source")
    qualifier: Series[str] = pa.Field(isin=("", *QUALIFIERS), description="'about' and the like, as printed")
    note: Series[str] = pa.Field(description="anything a reader of the row must know")
    id: Series[str] = pa.Field(unique=True, description="source/table/row/column")

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


REPORTED_REQUIRED = ("source", "table", "row", "column", "printed", "unit", "kind")
REPORTED_OPTIONAL = ("value", "n", "document", "section", "qualifier", "note")


class Causes(pa.DataFrameModel):
    """Entities that an incident's ground truth lists. One row, one group of the truth file."""

    incident_id: Series[str]
    group_id: Series[str] = pa.Field(description="the truth file's own id; exists nowhere in the cluster")
    kind: Series[str] = pa.Field(description="Kubernetes kind as written")
    namespace: Series[str] = pa.Field(nullable=True)
    name: Series[str] = pa.Field(nullable=True, description="exact name, where the truth gives one")
    pattern: Series[str] = pa.Field(
        nullable=True, description="regular expression for names, where the truth gives one"
    )
    is_root_cause: Series[bool]
    cause_set: Series[str] = pa.Field(description="first group id of the class of aliases, closed transitively")
    role: Series[str] = pa.Field(isin=("cause", "alerting", "path", "listed"), description="first that applies")
    n_alerts: Series[int] = pa.Field(ge=0, description="alerts that name this group")
    truth_sha256: Series[str]

    class Config:
        """Columns in this order, nothing else; a group stands once."""

        strict = True
        ordered = True
        unique = ["incident_id", "group_id"]  # noqa: RUF012  # pandera's form


class Edges(pa.DataFrameModel):
    """Propagation edges of an incident, as written: they may dangle or loop."""

    incident_id: Series[str]
    source: Series[str]
    target: Series[str]
    condition: Series[str]
    effect: Series[str]

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


RUN_STATUSES = ("scored", "empty", "malformed", "timed_out", "missing", "ungradeable")


class Runs(pa.DataFrameModel):
    """Runs of a model on an incident, whatever came of them."""

    model: Series[str]
    incident_id: Series[str]
    repeat: Series[int]
    status: Series[str] = pa.Field(isin=RUN_STATUSES)
    turns: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cost: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0)

    class Config:
        """Columns in this order, nothing else; a run stands once."""

        strict = True
        ordered = True
        unique = ["model", "incident_id", "repeat"]  # noqa: RUF012  # pandera's form


class Submissions(pa.DataFrameModel):
    """Entities that runs submitted as causes, in their order."""

    model: Series[str]
    incident_id: Series[str]
    repeat: Series[int]
    position: Series[int] = pa.Field(ge=0, description="0-based place in the submission")
    entity: Series[str] = pa.Field(description="the text as submitted")
    namespace: Series[str] = pa.Field(nullable=True)
    kind: Series[str] = pa.Field(nullable=True)
    name: Series[str]
    confidence: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0, le=1)
    stage: Series[str] = pa.Field(isin=("found", "suspected", "confirmed"))

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True
        unique = ["model", "incident_id", "repeat", "position"]  # noqa: RUF012  # pandera's form


class Logs(pa.DataFrameModel):
    """Logs of multi-agent runs, without their text. One row, one log."""

    log_id: Series[str] = pa.Field(unique=True, description="split and number, as in 'manual/12'")
    split: Series[str] = pa.Field(
        description="'algorithm-generated', 'hand-crafted', 'manual', 'automatic', or another"
    )
    n_steps: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=1, description="missing where only labels are at hand")
    question_id: Series[str] = pa.Field(nullable=True, description="SHA-256 of the question: logs of one are dependent")
    source: Series[str] = pa.Field(description="the format it was read from")
    release: Series[str] = pa.Field(nullable=True, description="which release of the format, where its keys tell")
    content_sha256: Series[str] = pa.Field(nullable=True, description="of speakers and texts of all steps")

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


class Steps(pa.DataFrameModel):
    """Who speaks at each step of a log."""

    log_id: Series[str]
    step: Series[int] = pa.Field(ge=0, description="0-based")
    role: Series[str] = pa.Field(nullable=True, description="the speaker as the log writes it")
    agent: Series[str] = pa.Field(
        nullable=True, description="the speaker as labels name it: 'Orchestrator' for 'Orchestrator (thought)'"
    )

    class Config:
        """Columns in this order, nothing else; a step stands once."""

        strict = True
        ordered = True
        unique = ["log_id", "step"]  # noqa: RUF012  # pandera's form


class Annotations(pa.DataFrameModel):
    """What annotators say of steps. A step that an annotator did not judge has no row."""

    log_id: Series[str]
    step: Series[int] = pa.Field(ge=0, description="0-based")
    annotator: Series[str] = pa.Field(description="'label' where a data set has one label a log")
    is_failure: Series[bool]
    agent: Series[str] = pa.Field(nullable=True, description="the agent that is held responsible")
    reason: Series[str] = pa.Field(nullable=True)
    ideal_action: Series[str] = pa.Field(nullable=True)
    category: Series[str] = pa.Field(nullable=True)

    class Config:
        """Columns in this order, nothing else; an annotator judges a step once."""

        strict = True
        ordered = True
        unique = ["log_id", "step", "annotator"]  # noqa: RUF012  # pandera's form


ATTEMPT_STATUSES = ("ok", "abstained", "unparsable", "truncated", "missing")


class Attempts(pa.DataFrameModel):
    """Samples that were drawn from a model for a log, whatever came of them."""

    log_id: Series[str]
    model: Series[str]
    sample: Series[int] = pa.Field(ge=0)
    status: Series[str] = pa.Field(isin=ATTEMPT_STATUSES)
    ranked: Series[bool] = pa.Field(description="whether the list is in order of priority (a leaderboard's list is)")
    n_unreadable: Series[int] = pa.Field(ge=0, description="listed items that name no step, and are left out")

    class Config:
        """Columns in this order, nothing else; a sample stands once."""

        strict = True
        ordered = True
        unique = ["log_id", "model", "sample"]  # noqa: RUF012  # pandera's form


class Predictions(pa.DataFrameModel):
    """Steps that the samples of models name as failures, in their order; a step out of range is kept, as wrong."""

    log_id: Series[str]
    model: Series[str]
    sample: Series[int] = pa.Field(ge=0)
    position: Series[int] = pa.Field(ge=0, description="0-based place in the list")
    step: Series[int] = pa.Field(ge=0, description="0-based")
    agent: Series[str] = pa.Field(nullable=True)
    reason: Series[str] = pa.Field(nullable=True)
    ideal_action: Series[str] = pa.Field(nullable=True)

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True
        unique = ["log_id", "model", "sample", "position"]  # noqa: RUF012  # pandera's form


REASONING_PARTS = ("failure_reason", "ideal_action", "overall")


class Reasoning(pa.DataFrameModel):
    """A judge's scores of a model's reasons, from 1 to 10; a score that was not given is missing."""

    log_id: Series[str]
    model: Series[str]
    step: Series[int] = pa.Field(ge=0, description="0-based")
    part: Series[str] = pa.Field(isin=REASONING_PARTS)
    score: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=1, le=10)

    class Config:
        """Columns in this order, nothing else; a part of a step is scored once."""

        strict = True
        ordered = True
        unique = ["log_id", "model", "step", "part"]  # noqa: RUF012  # pandera's form


CONDITIONS = ("clean", "stale1", "stale2", "missing")
ACTIONS = ("none", "refresh", "ablated_refresh", "replan")
OUTCOMES = ("rescue", "harm", "stable_success", "stable_failure")
FEATURE_PREFIX = "x_"  # columns with this prefix are features, known before the decision


class Episodes(pa.DataFrameModel):
    """Ends of runs that share their past up to a fork: one row, one branch. Columns `x_…` are features at the fork."""

    task_id: Series[str]
    condition: Series[str] = pa.Field(description="what was done to an observation before the fork; 'clean' is nothing")
    delay: Series[pd.Int64Dtype] = pa.Field(
        nullable=True, ge=0, description="actions from that observation to the fork; missing: 'none' for every delay"
    )
    action: Series[str] = pa.Field(description="what was done at the fork; 'none' is the branch without recovery")
    replicate: Series[int] = pa.Field(ge=0, description="of the branch; further 'none' branches are the A/A control")
    success: Series[bool]
    cohort: Series[str] = pa.Field(nullable=True, description="such as 'fit' and 'evaluation'")
    source: Series[str] = pa.Field(nullable=True, description="which engine and agent made the run")
    factual_success: Series[pd.BooleanDtype] = pa.Field(
        nullable=True, description="whether the undisturbed run of the task succeeded"
    )
    ended_before: Series[pd.BooleanDtype] = pa.Field(
        nullable=True, description="whether the run had ended before the fork: its outcome is carried forward"
    )
    prefix_hash: Series[str] = pa.Field(nullable=True, description="of the world's state at the fork")
    n_actions: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0, description="actions of the whole run")

    class Config:
        """These columns first, then features; a branch stands once."""

        unique = ["task_id", "condition", "delay", "action", "replicate"]  # noqa: RUF012  # pandera's form


class Pairs(pa.DataFrameModel):
    """A branch with an action beside the branch without, from the same fork."""

    task_id: Series[str]
    condition: Series[str]
    delay: Series[int] = pa.Field(ge=0)
    action: Series[str]
    replicate: Series[int] = pa.Field(ge=0)
    success_without: Series[bool]
    success_with: Series[bool]
    outcome: Series[str] = pa.Field(isin=OUTCOMES)
    tau: Series[int] = pa.Field(isin=(-1, 0, 1), description="success with less success without: rescue 1, harm -1")
    cohort: Series[str] = pa.Field(nullable=True)
    source: Series[str] = pa.Field(nullable=True)
    factual_success: Series[pd.BooleanDtype] = pa.Field(nullable=True)
    ended_before: Series[pd.BooleanDtype] = pa.Field(nullable=True)
    prefix_hash: Series[str] = pa.Field(nullable=True)

    class Config:
        """Columns in this order, nothing else; a pair stands once."""

        strict = True
        ordered = True
        unique = ["task_id", "condition", "delay", "action", "replicate"]  # noqa: RUF012  # pandera's form


class Candidates(pa.DataFrameModel):
    """Moments at which a rule may act, in the order of their delay, with what would come of it; then features `x_…`."""

    task_id: Series[str]
    condition: Series[str]
    replicate: Series[int] = pa.Field(ge=0)
    delay: Series[int] = pa.Field(ge=0)
    reached: Series[bool] = pa.Field(description="whether the run was still going on: else there is nothing to decide")
    is_error: Series[bool] = pa.Field(description="whether the condition disturbed an observation; not for the rule")
    success_without: Series[bool] = pa.Field(description="an outcome: not for the rule")
    success_with: Series[bool] = pa.Field(description="an outcome: not for the rule")
    tau: Series[int] = pa.Field(isin=(-1, 0, 1), description="an outcome: not for the rule")
    cohort: Series[str] = pa.Field(nullable=True)
    source: Series[str] = pa.Field(nullable=True)

    class Config:
        """These columns first, then features; a moment of a run stands once."""

        unique = ["task_id", "condition", "replicate", "delay"]  # noqa: RUF012  # pandera's form


TRIAL_STATES = ("finished", "unfinished", "not_started", "unreadable")
USAGE_STATUSES = ("reported", "absent", "zero_suspect", "partial")
CAUSE_SOURCES = ("observed", "inferred")
PLAN_SOURCES = ("file", "config", "given", "inferred")


class Plan(pa.DataFrameModel):
    """What was to be run, fixed before anything is read. One row, one trial: an arm's attempt at a task."""

    arm: Series[str]
    task_id: Series[str]
    attempt: Series[int] = pa.Field(ge=0)
    source: Series[str] = pa.Field(
        isin=PLAN_SOURCES, description="'inferred' from the trials themselves: what is in none of them is not in it"
    )

    class Config:
        """Columns in this order, nothing else; a trial is planned once."""

        strict = True
        ordered = True
        unique = ["arm", "task_id", "attempt"]  # noqa: RUF012  # pandera's form


class Trials(pa.DataFrameModel):
    """What is on record of trials, whatever harness ran them. A trial may stand here twice: `held` finds that."""

    arm: Series[str]
    task_id: Series[str] = pa.Field(nullable=True, description="missing only where a whole file is unreadable")
    attempt: Series[int] = pa.Field(ge=0, description="counts from 1; just a name where the format holds no order")
    state: Series[str] = pa.Field(isin=TRIAL_STATES)
    resolved: Series[pd.BooleanDtype] = pa.Field(nullable=True, description="the verifier's verdict, as recorded")
    reward: Series[pd.Float64Dtype] = pa.Field(nullable=True, description="the verifier's number, as recorded")
    reward_key: Series[str] = pa.Field(nullable=True, description="which of several rewards or metrics that is")
    reward_valid: Series[pd.BooleanDtype] = pa.Field(
        nullable=True, description="whether the verdict stands beside the cause; missing: no verdict, or not known"
    )
    cause: Series[str] = pa.Field(nullable=True, description="why it ended: one of `faultbook.taxonomy`")
    cause_source: Series[str] = pa.Field(nullable=True, isin=CAUSE_SOURCES, description="inferred from a text, or not")
    other_causes: Series[str] = pa.Field(nullable=True, description="further causes, joined by '; '")
    exception_type: Series[str] = pa.Field(nullable=True, description="the format's own name of what happened")
    total_seconds: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0)
    setup_seconds: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0, description="environment and agent set-up")
    agent_seconds: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0)
    verifier_seconds: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0)
    input_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cache_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0, description="read from a cache")
    output_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cache_included: Series[pd.BooleanDtype] = pa.Field(nullable=True, description="whether input_tokens hold the cache")
    requests: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0, description="calls of a model")
    cost: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0, description="USD, as recorded")
    usage_status: Series[str] = pa.Field(isin=USAGE_STATUSES, description="zero_suspect: 0 where nothing was metered")
    started_at: Series[str] = pa.Field(nullable=True, description="as recorded: UTC with offset, or local and naive")
    trial_id: Series[str] = pa.Field(nullable=True, description="the format's own")
    run_id: Series[str] = pa.Field(nullable=True)
    task_checksum: Series[str] = pa.Field(nullable=True)
    source_format: Series[str]
    source_version: Series[str] = pa.Field(nullable=True)
    source_path: Series[str] = pa.Field(nullable=True)
    source_sha256: Series[str] = pa.Field(nullable=True)
    note: Series[str] = pa.Field(nullable=True, description="what a reader of the row must know, in a sentence")

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


REQUEST_STATES = ("started", "completed", "denied", "unsettled")


class Requests(pa.DataFrameModel):
    """Requests of models, as a ledger has them. One row, one request; what was not metered is missing, never 0."""

    run_id: Series[str]
    trial_id: Series[str]
    attempt: Series[int] = pa.Field(ge=0)
    request_id: Series[str]
    state: Series[str] = pa.Field(isin=REQUEST_STATES)
    model: Series[str] = pa.Field(nullable=True)
    input_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cache_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0, description="read from a cache")
    output_tokens: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cache_included: Series[pd.BooleanDtype] = pa.Field(nullable=True, description="whether input_tokens hold the cache")
    cost: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0, description="USD, as recorded")
    usage_status: Series[str] = pa.Field(isin=USAGE_STATUSES)
    omitted_tool_images: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0, description="left out of this request")
    started: Series[str] = pa.Field(nullable=True, description="UTC")
    ended: Series[str] = pa.Field(nullable=True, description="UTC; missing where it has no end on record")

    class Config:
        """Columns in this order, nothing else; a request stands once."""

        strict = True
        ordered = True
        unique = ["run_id", "trial_id", "attempt", "request_id"]  # noqa: RUF012  # pandera's form


def typed(rows: list[Any] | pd.DataFrame, model: type[pa.DataFrameModel]) -> pd.DataFrame:
    """Make a table of the model from rows (dicts, tuples or a frame), with its column types even without a row."""
    columns = list(model.to_schema().columns)
    frame = pd.DataFrame(rows, columns=columns)
    types = {name: str(column.dtype) for name, column in model.to_schema().columns.items()}
    return model.validate(frame.astype(types))
