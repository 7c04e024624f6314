import { useState } from "react";
import { get, post, put } from "../api";
import {
  attempt,
  Badge,
  Button,
  DiffSwitch,
  DiffView,
  Field,
  ModelSays,
  Trouble,
  toast,
  useDiffMode,
  useLoaded,
} from "../components";
import { change, isAtWork, promote, useStore } from "../events/store";
import { count, DELIVERY, money, plural, seconds, signOf, VERDICT } from "../format";
import type { Change, Report } from "../types";
import { sendRequest } from "./Composer";
import { tests } from "./tests";

/** The words of the report on a run: its delivery, its verdict and what they rest on. */
export function Delivery({ report, said }: { report: Report; said: string }) {
  return (
    <div className="delivery">
      {report.answer && !said.includes(report.answer.trim()) && <ModelSays text={report.answer} />}
      <Evidence report={report} />
      <Lines label="tasks" lines={report.task_states.length > 1 ? report.task_states.map(task) : []} tone="plain" />
      <Lines label="notes" lines={[...report.notes, ...(report.stale ? [report.stale] : [])]} tone="plain" />
      {report.review && (
        <Lines label="review" lines={[report.review.summary, ...report.review.findings]} tone="plain" />
      )}
      {report.trouble && (
        <div className="trouble">
          {report.trouble.message}
          {report.trouble.advice && <div className="dim">{report.trouble.advice}</div>}
        </div>
      )}
      <Actions report={report} />
      <HandOver report={report} />
    </div>
  );
}

/** A plan is carried out if the user says so, as it is or as they edit it. */
function HandOver({ report }: { report: Report }) {
  const planning = useStore((store) => store.session?.choices.mode === "plan" && !store.session.working);
  const view = useStore((store) => [...store.runs.values()].at(-1));
  const [edited, setEdited] = useState<string | null>(null);
  if (!planning || view?.id !== report.run || report.exit_code || !report.answer.trim()) return null;
  const carryOut = () =>
    attempt(async () => {
      await put("/choices", { mode: "agent" });
      await sendRequest(edited === null ? `Carry out the plan: ${view.request}` : `Carry out this plan:\n\n${edited}`);
    });
  return (
    <>
      {edited !== null && <Field label="the plan" value={edited} onChange={setEdited} rows={12} />}
      <div className="actions">
        <Button tone="primary" onClick={carryOut}>
          Carry out this plan
        </Button>
        {edited === null && <Button onClick={() => setEdited(report.answer)}>Edit it first</Button>}
      </div>
    </>
  );
}

/** The verdict and what it rests on, but for lines that were told already; never better than the report. */
export function Evidence({ report, told = [] }: { report: Report; told?: readonly string[] }) {
  const untold = (line: string) => !told.some((one) => one.includes(line));
  const delivery = report.delivery && DELIVERY[report.delivery];
  const working = useStore((store) => isAtWork(store, report.run));
  return (
    <>
      <div className="delivery-line">
        {report.state === "working" &&
          (working ? <Badge tone="busy">at work</Badge> : <Badge tone="warn">stopped before its end</Badge>)}
        {delivery && <Badge tone={delivery[1]}>{delivery[0]}</Badge>}
        {report.verdict && <Badge tone={VERDICT[report.verdict]}>{report.verdict}</Badge>}
        {report.rejected !== null && <Badge tone="warn">rejected{report.rejected && `: ${report.rejected}`}</Badge>}
        {report.before && report.after && (
          <span>
            tests: {tests(report.before)} → {tests(report.after)}
          </span>
        )}
        <span className="dim">
          {plural(report.requests, "request")} · {count(report.usage.input_tokens)} in,{" "}
          {count(report.usage.output_tokens)} out · {money(report.cost_usd)} · {seconds(report.seconds)}
        </span>
      </div>
      {report.verdicts.length > 0 && (
        <div className="checks-line">
          {report.verdicts.map((one) => {
            const [sign, tone] = signOf(one.standing, report.verdict === "verified");
            return (
              <span key={one.step} title={one.reason} className={`step ${tone}`}>
                {one.step} {sign}
                {sign === "!" && " (shown, not counted)"}
              </span>
            );
          })}
        </div>
      )}
      <Lines label="refused" lines={report.refused.filter(untold)} tone="bad" />
      <Lines label="not proved" lines={report.unproved.filter(untold)} tone="warn" />
    </>
  );
}

const task = (one: Report["task_states"][number]) =>
  `${one.number}. ${one.what}: ${one.state}${one.reason ? ` (${one.reason})` : ""}`;

function Lines({ label, lines, tone }: { label: string; lines: string[]; tone: string }) {
  if (!lines.length) return null;
  return (
    <div className={`lines ${tone}`}>
      <span className="dim">{label}</span>
      <ul>
        {lines.map((line, key) => (
          <li key={key}>{line}</li>
        ))}
      </ul>
    </div>
  );
}

function Actions({ report }: { report: Report }) {
  const [shown, setShown] = useState<number | null>(null);
  const working = useStore((store) => isAtWork(store, report.run));
  const undo = async (entry: number) => {
    await change("undo", String(entry));
    toast(`entry ${entry} is undone`);
  };
  const look = (entry: number) => (
    <Button onClick={() => setShown(shown === entry ? null : entry)} aria-expanded={shown === entry}>
      Diff of entry {entry}
    </Button>
  );
  return (
    <>
      <div className="actions">
        {report.changes.length > 0 && (
          <span className="dim">
            {report.changes
              .slice(0, 4)
              .map((one) => one.path)
              .join(", ")}
            {report.changes.length > 4 && ` and ${report.changes.length - 4} more`}
          </span>
        )}
        {report.entry !== null && (
          <>
            {look(report.entry)}
            <Button onClick={() => attempt(() => undo(report.entry!))}>Undo</Button>
          </>
        )}
        {report.kept !== null && (
          <>
            {look(report.kept)}
            <Button onClick={() => attempt(async () => toast(await promote(report.kept!)))}>Promote</Button>
          </>
        )}
        {report.alternatives.map(([entry, what]) => (
          <span key={entry} title={what}>
            {look(entry)}
          </span>
        ))}
        {report.state === "working" && !working && (
          <Button tone="primary" onClick={() => attempt(() => post(`/runs/${report.run}/resume`))}>
            Resume
          </Button>
        )}
      </div>
      {shown !== null && <EntryDiff id={shown} />}
    </>
  );
}

/** The change of an entry of the history. */
export function EntryDiff({ id }: { id: number }) {
  const [mode, setMode] = useDiffMode();
  const loaded = useLoaded(() => get<Change>(`/entries/${id}/change`), id);
  return (
    <div>
      <Trouble error={loaded.error} />
      {loaded.value && (
        <>
          <div className="bar">
            <DiffSwitch mode={mode} onChange={setMode} />
          </div>
          <DiffView files={loaded.value.files} mode={mode} />
        </>
      )}
    </div>
  );
}
