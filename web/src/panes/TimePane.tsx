import { useMemo, useState } from "react";
import { command, get, post, query } from "../api";
import {
  attempt,
  Badge,
  Button,
  Card,
  Check,
  Dialog,
  DiffSwitch,
  DiffView,
  Empty,
  Field,
  Icon,
  ModelSays,
  Output,
  Select,
  Spinner,
  Table,
  Trouble,
  toast,
  useDiffMode,
  useLoaded,
} from "../components";
import type { RunView } from "../events/reduce";
import { change, isAtWork, promote, setConversation, useStore } from "../events/store";
import { clock, DELIVERY, day, plain, plural, seconds, shortModel } from "../format";
import type { Attempt, Change, Checkpoint, Entry, Report, RunRow } from "../types";
import { Delivery, EntryDiff } from "../work/Delivery";
import { JobsCard } from "./JobsCard";
import { compared, type Mark, marks, type Point, points } from "./points";
import { SpecCard } from "./SpecCard";

/** Runs, entries and checkpoints in the order of time; each can be looked at and come back to. */
export default function TimePane() {
  const key = useStore((store) => store.filesChanged);
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState("");
  const [naming, setNaming] = useState<string | null>(null);
  const loaded = useLoaded(async () => {
    const [runs, history, marks] = await Promise.all([
      get<RunRow[]>(query("/runs", { limit: 100 })),
      command<{ entries: Entry[] }>("history", "--limit", "200", ...(all ? ["--all"] : [])),
      command<{ checkpoints: Checkpoint[] }>("checkpoint", "--list"),
    ]);
    return points(runs, history.entries, marks.checkpoints);
  }, `${key} ${all}`);
  const days = useMemo(() => Map.groupBy(loaded.value ?? [], (point) => day(point.time)), [loaded.value]);
  const act = (words: string[]) =>
    attempt(async () => {
      const body = await change<{ title?: string; name?: string }>(...words);
      toast(body.title ?? (body.name ? `checkpoint ${body.name}` : "done"));
    });
  const point = loaded.value?.find((one) => one.key === chosen);
  const runs = (loaded.value ?? []).flatMap((one) => (one.kind === "run" ? [one.run] : []));
  return (
    <>
      <div className="bar">
        <Button onClick={() => act(["undo"])}>
          <Icon name="undo" />
          Undo
        </Button>
        <Button onClick={() => act(["redo"])}>
          <Icon name="redo" />
          Redo
        </Button>
        <Button onClick={() => setNaming("")}>Checkpoint…</Button>
        <Check label="also what was not promoted" checked={all} onChange={setAll} />
      </div>
      <div className="scroll" tabIndex={0}>
        <JobsCard />
        <Trouble error={loaded.error} />
        {loaded.loading && !loaded.value && <Spinner />}
        <SpecCard onRun={(run) => setChosen(`r${run}`)} />
        {loaded.value?.length === 0 && <Empty icon="time">Nothing was done in this workspace yet.</Empty>}
        {point && (
          <Look point={point} runs={runs} marked={marks(loaded.value ?? [])} act={act} onClose={() => setChosen("")} />
        )}
        {[...days].map(([name, list]) => (
          <ol key={name} className="timeline" aria-label={name}>
            <li className="day">{name}</li>
            {list.map((one) => (
              <li key={one.key} className={one.kind}>
                <button
                  type="button"
                  className={one.key === chosen ? "row-button selected" : "row-button"}
                  onClick={() => setChosen(one.key === chosen ? "" : one.key)}
                >
                  <span className="dim nowrap">{clock(one.time)}</span>
                  <Label point={one} />
                </button>
                {one.kind === "run" && <LiveAttempts run={one.run.id} />}
              </li>
            ))}
          </ol>
        ))}
      </div>
      <Dialog title="A checkpoint of the present" open={naming !== null} onClose={() => setNaming(null)}>
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault();
            const name = naming?.trim();
            setNaming(null);
            void act(name ? ["checkpoint", name] : ["checkpoint"]);
          }}
        >
          <Field label="name" value={naming ?? ""} onChange={setNaming} placeholder="checkpoint-1, checkpoint-2, …" />
          <Button type="submit" tone="primary">
            Make it
          </Button>
        </form>
      </Dialog>
    </>
  );
}

/** The tiers and attempts of a run whose events are here. */
function LiveAttempts({ run }: { run: string }) {
  const live = useStore((store) => store.runs.get(run));
  return live?.attempts.length ? <Attempts attempts={live.attempts} tiers={live.tiers} /> : null;
}

function Attempts({ attempts, tiers }: { attempts: readonly Attempt[]; tiers: readonly RunView["tiers"][number][] }) {
  return (
    <ol className="attempts" aria-label="attempts">
      {attempts.map((one, at) => (
        <li key={at}>
          {one.tier !== attempts[at - 1]?.tier && (
            <div>
              tier {one.tier + 1} {tiers[one.tier]?.name} <span className="dim">{tiers[one.tier]?.left}</span>
            </div>
          )}
          <details>
            <summary className="dim">
              attempt {at + 1}: {one.mode} {shortModel(one.model)} – {one.ended}
              {one.failing && `, ${plural(one.failing.length, "test")} failing`}, {seconds(one.seconds)}
            </summary>
            <AttemptLook attempt={one} name={`attempt ${at + 1}`} />
          </details>
        </li>
      ))}
    </ol>
  );
}

/** What is kept of an attempt: its bench is gone. */
function AttemptLook({ attempt: one, name }: { attempt: Attempt; name: string }) {
  const found = [...one.refused, ...(one.messages ?? []), ...(one.failing ?? []).map((test) => `fails: ${test}`)];
  return (
    <>
      {one.said && <ModelSays text={one.said} />}
      {one.diff && one.diff.length > 0 ? (
        <>
          <span className="dim">{one.paths.join(", ")}</span>
          <Output label={`the first lines that ${name} changed`} text={plain(one.diff.join("\n"))} />
        </>
      ) : (
        <span className="dim">nothing was changed</span>
      )}
      {found.length > 0 && <Output label={`what the checks said to ${name}`} text={plain(found.join("\n"))} />}
    </>
  );
}

function Label({ point }: { point: Point }) {
  const working = useStore((store) => isAtWork(store, point.kind === "run" ? point.run.id : ""));
  if (point.kind === "run") {
    const delivery = point.run.delivery && DELIVERY[point.run.delivery];
    return (
      <>
        <span className="nowrap">run</span> <span className="ellipsis">{point.run.request}</span>{" "}
        {delivery ? (
          <Badge tone={delivery[1]}>{delivery[0]}</Badge>
        ) : (
          <Badge tone={working ? "busy" : "warn"}>
            {point.run.state === "working" && !working ? "stopped" : point.run.state}
          </Badge>
        )}
      </>
    );
  }
  if (point.kind === "checkpoint")
    return (
      <>
        <span className="nowrap">checkpoint</span> <span className="ellipsis">{point.checkpoint.name}</span>
      </>
    );
  const { entry } = point;
  return (
    <>
      <span className="nowrap">entry {entry.id}</span> <span className="ellipsis">{entry.title}</span>{" "}
      <span className="dim nowrap">
        {entry.reversed_by !== null ? `undone by ${entry.reversed_by}` : (STATE[entry.state] ?? entry.state)} ·{" "}
        {entry.changed.length ? named(entry.changed) : plural(entry.paths, "file")}
      </span>
    </>
  );
}

const named = (paths: string[]) =>
  paths.slice(0, 2).join(", ") + (paths.length > 2 ? `, ${paths.length - 2} more` : "");

const STATE: Record<string, string> = { done: "promoted", captured: "kept" };

function Look({
  point,
  runs,
  marked,
  act,
  onClose,
}: {
  point: Point;
  runs: RunRow[];
  marked: Mark[];
  act: (words: string[]) => Promise<boolean>;
  onClose: () => void;
}) {
  const close = (
    <Button tone="quiet" onClick={onClose} aria-label="close">
      <Icon name="close" />
    </Button>
  );
  if (point.kind === "run")
    return <RunLook key={point.run.id} id={point.run.id} runs={runs} marked={marked} act={act} close={close} />;
  if (point.kind === "checkpoint")
    return <CheckpointLook key={point.key} checkpoint={point.checkpoint} marked={marked} act={act} close={close} />;
  const { entry } = point;
  const id = String(entry.id);
  const stands = entry.state === "done";
  return (
    <Card
      title={`Entry ${id}: ${entry.title}`}
      actions={
        <>
          {stands && <WayBack key={id} after={entry.id} marked={marked} act={act} />}
          {stands && entry.reversed_by === null && <Button onClick={() => act(["undo", id])}>Undo</Button>}
          {entry.state === "captured" && (
            <Button onClick={() => attempt(async () => toast(await promote(id)))}>Promote</Button>
          )}
          {close}
        </>
      }
    >
      {entry.reason && <p className="dim">{entry.reason}</p>}
      {entry.pruned ? <Empty>Its contents were dropped by gc.</Empty> : <EntryDiff key={id} id={entry.id} />}
    </Card>
  );
}

/** A run beside another one: what came of each, and what it took. */
function Comparison({ report, runs }: { report: Report; runs: RunRow[] }) {
  const [id, setId] = useState("");
  const other = useLoaded(() => (id ? get<Report>(`/runs/${id}`) : Promise.resolve(null)), id);
  const others = runs.filter((one) => one.id !== report.run);
  if (!others.length) return null;
  const options = others.map((one) => [one.id, `${one.id}: ${one.request.slice(0, 60)}`] as [string, string]);
  const rows = other.value ? compared(report, other.value) : [];
  return (
    <>
      <Select label="compare with" value={id} options={[["", "no other run"], ...options]} onChange={setId} />
      <Trouble error={other.error} />
      {rows.length > 0 && <Table label="comparison" head={["", report.run, id]} rows={rows} />}
    </>
  );
}

interface Looked {
  marked: Mark[];
  act: (words: string[]) => Promise<boolean>;
  close: React.ReactNode;
}

function RunLook({ id, runs, marked, act, close }: { id: string; runs: RunRow[] } & Looked) {
  const report = useLoaded(() => get<Report>(`/runs/${id}`), id);
  const live = useStore((store) => store.runs.get(id));
  const attempts = live?.attempts.length ? live.attempts : (report.value?.loop?.attempts ?? []);
  return (
    <Card
      title={`Run ${id}`}
      actions={
        <>
          {report.value?.conversation && (
            <Button
              onClick={() =>
                attempt(async () => setConversation(await post("/conversation", { id: report.value!.conversation })))
              }
            >
              Its conversation
            </Button>
          )}
          {report.value?.entry != null && <WayBack after={report.value.entry} marked={marked} act={act} />}
          {close}
        </>
      }
    >
      <Trouble error={report.error} />
      {report.value && <Delivery report={report.value} said="" />}
      {report.value && <Comparison report={report.value} runs={runs} />}
      {attempts.length > 0 && <Attempts attempts={attempts} tiers={live?.tiers ?? []} />}
    </Card>
  );
}

function CheckpointLook({ checkpoint, marked, act, close }: { checkpoint: Checkpoint } & Looked) {
  return (
    <Card
      title={`Checkpoint ${checkpoint.name}`}
      actions={
        <>
          <WayBack after={checkpoint.after_entry ?? 0} name={checkpoint.name} marked={marked} act={act} />
          {close}
        </>
      }
    >
      <p className="dim">
        {checkpoint.after_entry ? `after entry ${checkpoint.after_entry}` : "at the beginning"}; restoring takes back
        all that was promoted since, merged like an undo, and makes a checkpoint of the present first.
      </p>
    </Card>
  );
}

/** The point after an entry beside the present or another point, and the way back to it. */
function WayBack({ after, name, marked, act }: { after: number; name?: string; marked: Mark[]; act: Looked["act"] }) {
  const [open, setOpen] = useState(false);
  const [other, setOther] = useState("");
  const others = marked.filter((one) => one.after !== after);
  const until = other === "" ? 0 : Number(other);
  return (
    <>
      <Button onClick={() => setOpen(true)} title="what was changed between this point and another one">
        Compare…
      </Button>
      <Button
        onClick={() => act(name ? ["restore", name] : ["restore", "--entry", String(after)])}
        title="takes back all that was promoted since"
      >
        Restore
      </Button>
      <Dialog
        title={name ? `Since checkpoint ${name}` : `Since entry ${after}`}
        open={open}
        onClose={() => setOpen(false)}
      >
        <Select
          label="compare with"
          value={other}
          options={[["", "the present"], ...others.map((one) => [String(one.after), one.label] as [string, string])]}
          onChange={setOther}
        />
        {open && (
          <Difference after={until && until < after ? until : after} until={until < after && until ? after : until} />
        )}
      </Dialog>
    </>
  );
}

/** What was changed from the point after one entry to that after another, or to the present. */
function Difference({ after, until }: { after: number; until: number }) {
  const [mode, setMode] = useDiffMode();
  const loaded = useLoaded(() => get<Change>(query("/changes", { after, until })), `${after} ${until}`);
  return (
    <>
      <Trouble error={loaded.error} />
      {loaded.loading && <Spinner />}
      {loaded.value?.files.length === 0 && <Empty>Nothing differs.</Empty>}
      {loaded.value && loaded.value.files.length > 0 && (
        <>
          <DiffSwitch mode={mode} onChange={setMode} />
          <DiffView files={loaded.value.files} mode={mode} />
        </>
      )}
    </>
  );
}
