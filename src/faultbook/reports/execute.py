"""Run one notebook with papermill: own kernel over IPC, an outer time limit, and a verdict that trusts no metadata."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_event_loop
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from faultbook.processes import start_ticks
from faultbook.runtime.children import Child
from faultbook.runtime.deadline import Deadline
from faultbook.text import plain

_ENGINE = "faultbook"
KERNEL_LOG = "kernel.log"
OnCell = Callable[[int, int], None]
OnChild = Callable[[Child], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: the notebook as far as it got, seconds, and the error (None if it succeeded)."""

    notebook: nbformat.NotebookNode
    seconds: float
    error: str | None


class NotebookRun:
    """One run of one notebook. `execute` runs it in the calling thread; `stop` may come from any thread."""

    def __init__(
        self,
        notebook: nbformat.NotebookNode,
        *,
        folder: Path,
        building: Path,
        environment: Mapping[str, str],
        limit: float,
        deadline: Deadline | None = None,
        on_cell: OnCell = lambda index, total: None,
        on_child: OnChild = lambda child: None,
    ) -> None:
        self.notebook = notebook
        self._folder, self._building, self._environment = folder, building, dict(environment)
        self._limit, self._on_cell, self._on_child = limit, on_cell, on_child
        self._deadline = deadline
        self._child: Child | None = None
        self._started_cells = 0
        self._stopped: str | None = None
        self._manager: Any = None
        self._lock = threading.Lock()

    def execute(self, parameters: Mapping[str, Any]) -> Outcome:
        """Run all cells with the given (checked) parameters. Never raises for what the notebook does."""
        begun = time.monotonic()
        # An IPC address has at most 107 bytes. In the building folder a killed run's leftovers are cleared away.
        short = len(os.fsencode(self._building.resolve())) < 70
        runtime = Path(tempfile.mkdtemp(prefix=".k-", dir=self._building.resolve() if short else None))
        left = self._limit if self._deadline is None else self._deadline.remaining("tool")
        timer = threading.Timer(left, self.stop, [self.too_long])
        timer.daemon = True
        timer.start()
        try:
            error = self._run(parameters, runtime)
        finally:
            timer.cancel()
            self._kill()
            _close_event_loop()
            shutil.rmtree(runtime, ignore_errors=True)
        return Outcome(self.notebook, time.monotonic() - begun, self._stopped or error)

    @property
    def too_long(self) -> str:
        """What its outcome says if it ran into its limit."""
        return f"ran longer than its limit of {self._limit:g} s"

    def stop(self, reason: str) -> None:
        """End the run and its kernel's whole process group; the outcome says why."""
        with self._lock:
            self._stopped = self._stopped or reason
        self._kill()

    def _run(self, parameters: Mapping[str, Any], runtime: Path) -> str | None:
        papermill_engines.register(_ENGINE, _WatchedEngine)
        # It doubts parameters that it cannot parse, but they are checked already; errors reach the outcome.
        logging.getLogger("papermill").setLevel(logging.CRITICAL + 1)
        try:
            self.notebook = papermill.execute_notebook(
                self.notebook,
                None,
                parameters=dict(parameters),
                engine_name=_ENGINE,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                request_save_on_cell_execute=False,
                kernel_manager_class=self._kernel_manager_class(runtime),
                watched=self,
            )
        except PapermillExecutionError as error:
            return plain(f"cell {error.exec_count}: {error.ename}: {error.evalue}", most=1000)
        except Exception as error:  # whatever papermill or the kernel raised is the verdict
            last = _last_line(runtime / KERNEL_LOG)
            return plain(f"{type(error).__name__}: {error}" + (f" (kernel: {last})" if last else ""), most=1000)
        return self._incomplete()

    def _incomplete(self) -> str | None:
        """Papermill takes `sys.exit(0)` for success although the rest of the notebook did not run."""
        for cell in self.notebook.cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    return plain(f"{output.ename}: {output.evalue} ended the notebook early", most=1000)
        if self._started_cells < len(self.notebook.cells):
            return f"only {self._started_cells} of {len(self.notebook.cells)} cells ran"
        return None

    def begin_cell(self, notebook: nbformat.NotebookNode, index: int) -> None:
        """Note a cell that starts (called by the engine)."""
        self.notebook, self._started_cells = notebook, self._started_cells + 1
        if self._stopped:
            raise RuntimeError(self._stopped)
        self._on_cell(index + 1, len(notebook.cells))

    def _kernel_manager_class(self, runtime: Path) -> type[AsyncKernelManager]:
        run = self

        class Manager(AsyncKernelManager):
            """Our Python, our kernel module, over IPC: no ports, and no kernelspec of the user's in its place."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, transport="ipc", connection_file=str(runtime / "kernel.json"), **kwargs)
                # -P: a file beside a notebook must not stand in for a module of the kernel's
                argv = [sys.executable, "-P", "-m", "faultbook.reports.kernel", "-f", "{connection_file}"]
                self._kernel_spec = KernelSpec(argv=argv, display_name="Python 3", language="python")
                run._manager = self

            async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]  # async in the base class too
                """Start in the notebook's folder with the run's environment."""
                # Start-up files of the user are no input that a manifest could name.
                own = {"IPYTHONDIR": str(runtime / "ipython"), "PYTHONSTARTUP": ""}
                environment = {**os.environ, **run._environment, **own}
                with (runtime / KERNEL_LOG).open("ab") as log:  # its notices are not the user's
                    where = {"cwd": str(run._folder), "env": environment, "stdout": log, "stderr": log}
                    await super().start_kernel(**{**kwargs, **where})
                run._own(getattr(self.provisioner, "pid", None))

        return Manager

    def _own(self, pid: int | None) -> None:
        """Take note of who the kernel is, so that no other process is ever taken for it."""
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                self._child = Child.adopt(pid, program="kernel")
                self._on_child(self._child)

    def _kill(self) -> None:
        """End the kernel's whole process group, unless its id belongs to somebody else by now."""
        group = getattr(getattr(self._manager, "provisioner", None), "pgid", None)
        known = None if self._child is None or self._child.pid != group else self._child.identity.start_ticks
        if group and group != os.getpgrp() and (known is None or start_ticks(group) in (None, known)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


def _last_line(log: Path) -> str:
    """What the kernel process said last, if anything: a crash of compiled code says it there."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = [line for line in text.splitlines() if line.strip() and "[IPKernelApp]" not in line]
    return lines[-1].strip() if lines else ""


def _close_event_loop() -> None:
    """Close the loop that nbclient opened for this thread; a thread that runs a loop of its own keeps it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        ensure_event_loop().close()
        asyncio.set_event_loop(None)


class _WatchedEngine(NBClientEngine):  # type: ignore[misc]  # papermill is untyped
    """papermill's own engine; it tells the run when a cell starts."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, watched: NotebookRun, **kwargs: Any) -> Any:
        """Execute, reporting every cell."""
        watched.notebook, start = nb_man.nb, nb_man.cell_start

        def cell_start(cell: Any, cell_index: int = 0, **rest: Any) -> None:
            watched.begin_cell(nb_man.nb, cell_index)
            start(cell, cell_index, **rest)

        nb_man.cell_start = cell_start
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
