import { useEffect } from "react";
import { command } from "../api";
import { attempt, Badge, Button, Card, Check, Plot, Trouble, useLoaded } from "../components";
import { seconds } from "../format";
import type { Job } from "../types";
import { actions, arranged, counted, pace } from "./jobs";

const TONE: Record<string, "good" | "bad" | "warn" | "busy"> = {
  done: "good",
  failed: "bad",
  running: "busy",
  waiting: "warn",
};
const LOOK_MS = 3000;

/** The queue of all projects, as `pawl queue list` has it; nothing where it is empty. */
export function JobsCard() {
  const loaded = useLoaded(() => command<{ jobs: Job[]; paused: boolean }>("queue", "list"), "");
  const { reload } = loaded;
  const busy = loaded.value?.jobs.some((one) => one.standing === "running" || one.standing === "queued");
  useEffect(() => {
    const timer = busy ? setInterval(reload, LOOK_MS) : undefined;
    return () => clearInterval(timer);
  }, [busy, reload]);
  const act = (...words: string[]) =>
    attempt(async () => {
      await command("queue", ...words);
      reload();
    });
  if (!loaded.value?.jobs.length) return <Trouble error={loaded.error} />;
  const { jobs, paused } = loaded.value;
  const told = pace(jobs);
  return (
    <Card
      title={`Queue: ${counted(jobs)}`}
      actions={
        <Check label="paused" checked={paused} onChange={(now) => void act(now ? "pause" : "resume", "--all")} />
      }
    >
      <ul className="plain-list" aria-label="jobs">
        {arranged(jobs).map((one) => (
          <li key={one.id} className="bar">
            <span className="nowrap">job {one.id}</span> <Badge tone={TONE[one.standing]}>{one.standing}</Badge>
            <span className="ellipsis" title={one.reason || one.workspace}>
              {one.request}
            </span>
            {actions(one).map(([label, word]) => (
              <Button key={word} tone="quiet" onClick={() => act(word, String(one.id))}>
                {label}
              </Button>
            ))}
          </li>
        ))}
      </ul>
      {told && (
        <div className="split">
          <Plot
            title="Jobs that ended"
            labels={told.labels}
            format={String}
            series={[{ name: "ended", values: told.ended }]}
          />
          <Plot
            line
            title="Waited to be taken (half of the jobs)"
            labels={told.labels}
            format={seconds}
            series={[{ name: "waited", values: told.waited }]}
          />
        </div>
      )}
    </Card>
  );
}
