"""Tasks of a wave as jobs of the queue: workers carry them, on this machine or on those that share the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pawl.agent.queue.job_queue import JobQueue, JobWish, add
from pawl.core.job import Job, JobState
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.run import RunRequest
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveJobs:
    shop: Project
    queue: JobQueue

    def unended(self) -> dict[str, int]:
        """The jobs of this workspace that have not ended, by their requests; also those of a killed execution."""
        every = (one for one in self.queue.list() if one.workspace == self.shop.workspace)
        return {one.order.text: one.id for one in every if one.state is not JobState.ENDED}

    def put(self, orders: Mapping[str, RunRequest], tell: Callable[[str], object]) -> dict[str, int]:
        """The job of each task; one whose request is on the queue already is not added again."""
        known = self.unended()
        new = [one for one in orders.values() if redacted(one.text) not in known]
        if new:
            texts = [one.text for one in new]
            known |= zip(map(redacted, texts), add(self.shop, self.queue, JobWish(order=new[0]), texts), strict=True)
        jobs = {task: known[redacted(one.text)] for task, one in orders.items()}
        for task, number in jobs.items():
            tell(f"{task} is job {number} of the queue")
        return jobs

    def begun_again(self, runs: Sequence[str]) -> dict[str, int]:
        """The jobs of these runs, which were interrupted; not those of runs that are of no job."""
        found = {run: number for run in runs if (number := self.queue.number_of(run)) is not None}
        for number in found.values():
            if self.queue.get(number).state is JobState.ENDED:
                self.queue.retry(number)
        return found

    def carried(self, jobs: Mapping[str, int], cancel: CancelToken) -> Iterator[tuple[str, Job]]:
        """Each task when a worker has taken it as far as it goes alone. Who stops waiting leaves them on the queue."""
        left = dict(jobs)
        while left:
            for task, number in list(left.items()):
                job = self.queue.get(number)
                if job.state in (JobState.WAITING, JobState.ENDED):
                    del left[task]
                    yield task, job
            if left and cancel.wait(self.queue.look_seconds):
                raise cancel.error()
