"""One window: the collectors between its first and last recorded step, and the files that come of it.

Whatever a collector raises ends here: that collector is let go, the problem is noted, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.capture import backends
from stepscope.capture.backends.base import Backend
from stepscope.capture.files.identity import Identity, identify
from stepscope.capture.files.published import Published
from stepscope.capture.files.run_folder import RunName, run_of
from stepscope.capture.files.writer import SIDECAR, Recorded, Staging, named
from stepscope.capture.light import LightWindow
from stepscope.capture.machine import debug_settings, frozen, kept, matrices
from stepscope.capture.machine.labels import Labels
from stepscope.capture.machine.lengths import Lengths
from stepscope.capture.machine.telemetry import Telemetry
from stepscope.capture.process import active, clock
from stepscope.capture.process.guarded import taken_faults
from stepscope.capture.process.troubles import Troubles, explain, trouble
from stepscope.capture.ring.ring import Ring
from stepscope.capture.settings import SCHEMA, Settings, about
from stepscope.ring_layout import STEP

# Steps are marked without `_each`: where Python calls are recorded, too, each call of ours costs the job a microsecond.
_MARKING = "marking a step"


class Window:
    """Recording, from warm-up to files."""

    def __init__(self, settings: Settings, number: int, troubles: Troubles) -> None:
        self._settings = settings
        self.number = number
        self._troubles = troubles
        self._ring: Ring | None = None
        self._backends: list[Backend] = []
        self._staging: Staging | None = None
        self._telemetry = Telemetry() if settings.telemetry else None
        self._labels = Labels()
        self._lengths = Lengths()
        self._started: dict[str, int] = {}
        self._is_paused = False
        self._open_step: int | None = None
        self._has_regions = False
        self._in_ring = 0
        self._light: LightWindow | None = None
        self.last_step: int | None = None
        self.prepare()

    def prepare(self) -> None:
        """Make the folder and the collectors."""
        try:
            worker = self._settings.worker or identify().worker
            self._staging = Staging(self._settings.folder, worker)
            names = self._settings.backends or backends.detect()
            self._backends = backends.make(names, self._settings.options, self._troubles)
            if self._telemetry is not None:
                self._telemetry.prepare()
        except Exception as error:
            self._troubles.failed(f"Recording into {self._settings.folder}", error)

    @property
    def is_alive(self) -> bool:
        """Whether anything is being recorded."""
        return bool(self._backends)

    def warm_up_light(self) -> None:
        """Make the collector of the light window, and get it ready."""
        if self._staging is None or not self._backends:
            return
        names = [backend.name for backend in self._backends]
        options = self._settings.options
        self._light = LightWindow(
            lambda: backends.make_light(names, options), self._staging.folder("light-window")
        )
        self._light.warm_up()

    def start_light(self) -> None:
        """Record lightly from now on."""
        if self._light is not None:
            self._light.start()

    def finish_light(self, first: int, moments: list[int]) -> None:
        """The light window is over: write its file, which stays in the hidden folder until the trace is there."""
        if self._light is not None:
            self._light.finish(first, moments)

    def warm_up(self) -> None:
        """Load and allocate what the collectors need."""
        self._each("warming up", lambda backend: backend.warm_up(self._folder(backend)))

    def start(self, ring: Ring | None = None) -> None:
        """Record from now on; what is known at once goes into the ring, too."""
        if self._telemetry is not None and self._backends:
            self._telemetry.before()
        self._each("starting", lambda backend: backend.start(self._folder(backend)))
        if not self._backends:
            return
        active.taken_phases()
        active.taken_ops()
        active.is_timing = True
        self._started = clock.both()
        if ring is not None:
            self._ring = ring
            self._keep_in(ring)
        if self._telemetry is not None:
            self._telemetry.start()
        if self._settings.options.sync:
            self._labels.start([backend.name for backend in self._backends])
            self._lengths.start([backend.name for backend in self._backends])

    def attach(self, name: str) -> None:
        """A framework that is in use only now: its collector joins those that record already, from the next step on."""
        if not self._started or any(backend.name == name for backend in self._backends):
            return
        for backend in backends.make((name,), self._settings.options, self._troubles):
            try:
                backend.warm_up(self._folder(backend))
                backend.start(self._folder(backend))
                if self._is_paused:
                    backend.pause()
                self._backends = [*self._backends, backend]
            except Exception as error:
                self._let_go(backend, "starting", error)

    def _keep_in(self, ring: Ring) -> None:
        """From now on what happens is in the ring, too."""
        facts = about(self._settings)
        for backend in self._backends:
            try:
                facts["versions"] |= backend.versions()
            except Exception as error:
                self._troubles.note(explain(f"{backend.name}: asking for its version", error))
        ring.open_window(
            self._started["perf_counter_ns"],
            **facts,
            backend=self._backends[0].name,
            backends=[each.name for each in self._backends],
            window=self.number,
            start_unix_ns=self._started["unix_ns"],
            has_regions=False,
            gpus=self._telemetry.gpu_facts if self._telemetry is not None else [],
        )
        ring.look(None)
        if self._telemetry is not None:
            self._telemetry.keep_in(ring)
        active.ring = ring

    def begin_step(self, number: int, region: str = "") -> None:
        """A step begins, or a pass through a region."""
        self._open_step = number
        if self._has_regions and self._ring is not None:
            self._in_ring = self._ring.begin(STEP, region, time.perf_counter_ns())
        for backend in self._backends:
            try:
                backend.begin_step(number)
            except Exception as error:
                self._let_go(backend, _MARKING, error)

    def end_step(self) -> None:
        """The step is over."""
        self.last_step = self._open_step
        if self._has_regions and self._ring is not None:
            self._ring.end(self._in_ring, time.perf_counter_ns())
        for backend in self._backends:
            try:
                backend.end_step()
            except Exception as error:
                self._let_go(backend, _MARKING, error)

    def pause(self) -> None:
        """Record nothing until resume."""
        if not self._is_paused:
            self._is_paused = True
            self._note_regions()
            self._labels.pause()
            self._lengths.pause()
            self._each("pausing", lambda backend: backend.pause())

    def resume(self) -> None:
        """Record again."""
        if self._is_paused:
            self._is_paused = False
            self._each("resuming", lambda backend: backend.resume())
            self._labels.resume()
            self._lengths.resume()
            active.ring = self._ring

    def _note_regions(self) -> None:
        """Nothing is kept between them, and they are the steps."""
        active.ring = None
        if not self._has_regions and self._ring is not None:
            self._ring.tell(has_regions=True)
        self._has_regions = True

    def finish(
        self, steps: Callable[[], dict[str, Any]], extra: dict[str, Any], is_job_ending: bool = False
    ) -> list[Published]:
        """Stop, and write everything. A step that has not ended is not recorded.

        `is_job_ending`: the devices are not asked for anything any more.
        """
        active.is_timing, active.ring = False, None
        self._labels.pause()
        self._lengths.pause()
        ended = clock.both()
        if not self._started:
            self.abandon()
            return []
        # Before the collectors stop, which takes them long and leaves the GPU idle.
        telemetry = self._telemetry.stop() if self._telemetry is not None else None
        self._each("stopping", lambda backend: backend.stop())
        for thread, error in taken_faults():
            self._troubles.note(explain(f"The thread {thread}", error))
        note = self._note(ended, telemetry) | extra | {"steps": steps()}
        if not is_job_ending and self._settings.options.sync:
            note["matrices"] = matrices.look([backend.name for backend in self._backends])
            note["labels"] = self._labels.count()
            note["lengths"] = self._lengths.count()
            note["kept"] = kept.rows(self._labels.kept, self._lengths.kept)
            note["frozen"] = frozen.look([backend.name for backend in self._backends])
        self._labels.forget()
        self._lengths.forget()
        try:
            return self._saved(note)
        except Exception as error:
            self._troubles.failed("Writing the profile", error)
            return []
        finally:
            if self._staging is not None:
                self._staging.remove()

    def abandon(self) -> None:
        """Let go of everything; nothing is written."""
        active.is_timing, active.ring = False, None
        self._labels.forget()
        self._lengths.forget()
        if self._telemetry is not None and self._started:
            self._telemetry.stop()
        if self._light is not None:
            self._light.abandon()
        for backend in self._backends:
            try:
                backend.abandon()
            except Exception as error:
                self._troubles.failed(f"{backend.name}: stopping", error)
        self._backends = []
        if self._staging is not None:
            self._staging.remove()

    def _folder(self, backend: Backend) -> Path:
        assert self._staging is not None
        return self._staging.folder(backend.name)

    def _each(self, what: str, act: Callable[[Backend], None]) -> None:
        for backend in self._backends:
            try:
                act(backend)
            except Exception as error:
                self._let_go(backend, what, error)

    def _let_go(self, backend: Backend, what: str, error: Exception) -> None:
        """Go on without it. The list is a new one: someone may be going through the old one."""
        self._troubles.failed(f"{backend.name}: {what}", error)
        self._backends = [each for each in self._backends if each is not backend]
        try:
            backend.abandon()
        except Exception:  # it failed already, which has been told
            pass

    def _saved(self, note: dict[str, Any]) -> list[Published]:
        staging = self._staging
        if staging is None:
            return []
        who = identify()
        run = run_of(staging.target, who, self.number)
        note |= self._about(who, run)
        found: list[Published] = []
        folders_taken = 0
        for backend in self._backends:
            try:
                files = [*backend.save(), *self._light_files(backend)]
                for lacking in (each.no_frames for each in files if each.no_frames):
                    self._troubles.note(trouble("frames-left-out", f"{backend.name}: {lacking}."))
                place = staging.target
                if backend.in_run_folder:
                    suffix = f"_{backend.name}" if folders_taken else ""
                    place = staging.target / "plugins" / "profile" / (run.folder + suffix)
                    folders_taken += 1
                own = note | {"backend": backend.name, "problems": self._troubles.rows()}
                own |= {"devices": backend.devices(), "versions": note["versions"] | backend.versions()}
                own |= {} if self._light is None else {"light": self._light.note(backend.name)}
                found.append(self._published(files, place, own, who, backend.in_run_folder))
            except Exception as error:
                self._troubles.failed(f"{backend.name}: writing the profile", error)
        if not found:
            found.append(
                self._published([], staging.target, note | {"problems": self._troubles.rows()}, who, False)
            )
        return found

    def _light_files(self, backend: Backend) -> list[Recorded]:
        return [] if self._light is None else self._light.files_of(backend.name)

    def _published(
        self, files: list[Recorded], place: Path, note: dict[str, Any], who: Identity, in_run_folder: bool
    ) -> Published:
        assert self._staging is not None
        name = _host_name(who) if in_run_folder else _timed_name(self._settings.worker or who.worker)
        made = self._staging.publish(files, place, name, note)
        stem = made[-1].name.removesuffix(SIDECAR)
        return Published(made, named(note, stem, files[0].ending if files else ""))

    def _note(self, ended: dict[str, int], telemetry: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "file": None,
            "backend": "",
            "start_unix_ns": self._started["unix_ns"],
            "end_unix_ns": ended["unix_ns"],
            "clock": clock.compared(self._started, ended),
            "last_step": self.last_step,
            "devices": [],
            "telemetry": telemetry,
            "phases": active.taken_phases(),
            "ops": active.taken_ops(),
            "debug_settings": debug_settings.look([backend.name for backend in self._backends]),
            "matrices": [],
            "labels": [],
            "lengths": [],
            "kept": [],
            "frozen": [],
        }

    def _about(self, who: Identity, run: RunName) -> dict[str, Any]:
        return {
            **about(self._settings, who),
            "run": run.unique,
            "window": self.number,
            "recording": None if self._ring is None else self._ring.id,
        }


def _timed_name(worker: str) -> Callable[[int], str]:
    """<worker>.<time>, as PyTorch's handler for TensorBoard names its files."""
    now = time.time_ns()
    return lambda attempt: f"{worker}.{now + attempt}"


def _host_name(who: Identity) -> Callable[[int], str]:
    """<host>, as TensorFlow and JAX name theirs; with the rank where there are several, and the process where it is taken."""
    base = who.host if who.rank is None or (who.world_size or 1) <= 1 else f"{who.host}_rank{who.rank}"

    def name(attempt: int) -> str:
        if attempt == 0:
            return base
        return f"{base}_{who.pid}" + (f"_{attempt}" if attempt > 1 else "")

    return name
