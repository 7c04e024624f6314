import { Fragment, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { get, post, Refused } from "../api";
import {
  attempt,
  Badge,
  Button,
  Dialog,
  Empty,
  Icon,
  Markdown,
  ModelSays,
  Output,
  Spinner,
  Trouble,
  toast,
  useLoaded,
} from "../components";
import { type Block, type RunView, turnsToBlocks } from "../events/reduce";
import { change, refresh, setConversation, useStore } from "../events/store";
import { clock, day, plain, plural, seconds, signOf } from "../format";
import { go } from "../place";
import type { ConversationRow, SessionState, Told, Turn } from "../types";
import { Approval, CommandQuestion } from "./Approval";
import { Composer } from "./Composer";
import { Delivery } from "./Delivery";
import { ToolCard } from "./ToolCard";
import { tests } from "./tests";

/** Blocks that are drawn at first; earlier ones when they are asked for. */
const WINDOW = 150;

interface Shown {
  id: string;
  began: string;
  blocks: Block[];
  live: boolean;
  /** It has not ended, and nobody here works on it: its server was killed or it was left, or it is a terminal's. */
  left: "" | "left" | "elsewhere";
  node: string;
}

/** The conversation, the question that waits, and the place for the next request. */
export function WorkPane() {
  const session = useStore((store) => store.session);
  const runs = useStore((store) => store.runs);
  const followed = useStore((store) => store.followed);
  const conversation = session?.conversation ?? "";
  const record = useLoaded(
    () => (conversation ? get<Turn[]>(`/conversations/${encodeURIComponent(conversation)}`) : Promise.resolve([])),
    conversation,
  );
  const shown = useMemo(
    () => shownRuns(record.value ?? [], runs, session, followed),
    [record.value, runs, session, followed],
  );
  const told = useLoaded(() => (session?.said ? get<Told[]>("/told") : Promise.resolve([])), `${session?.said ?? 0}`);
  const waiting = session?.waiting;
  return (
    <div className="work">
      <WorkBar fresh={conversation === "" && followed.length === 0} />
      <Conversation runs={shown} told={told.value ?? []} loading={record.loading && !shown.length} />
      {session?.trouble && !session.working && <Trouble error={troubleOf(session.trouble)} />}
      {waiting && <Approval key={waiting.question.digest} run={waiting.run} question={waiting.question} />}
      {session?.asked && <CommandQuestion key={session.asked.id} {...session.asked} />}
      <Composer />
    </div>
  );
}

const troubleOf = ({ error, message, advice }: NonNullable<SessionState["trouble"]>) =>
  new Refused(0, error, message, advice);

/** The runs of the conversation: those whose events are here, before them what the record keeps of older ones. */
function shownRuns(
  turns: Turn[],
  runs: ReadonlyMap<string, RunView>,
  session: SessionState | null,
  followed: readonly string[],
): Shown[] {
  if (!session) return [];
  const shown: Shown[] = [];
  for (const [id, blocks] of turnsToBlocks(turns))
    if (!runs.get(id)?.whole)
      shown.push({
        id,
        began: turns.find((turn) => turn.run === id)!.time,
        blocks,
        live: false,
        left: "",
        node: "",
      });
  for (const run of runs.values()) {
    const mine = session.conversation !== "" && run.conversation === session.conversation;
    if (!(mine && (run.whole || run.state !== "ended")) && !followed.includes(run.id)) continue;
    const open = run.state !== "ended" && run.report === null;
    const live = open && run.id === session.run;
    const other = session.elsewhere.includes(run.id);
    const alone = open && !live && run.state === "working";
    const left = alone && other ? "elsewhere" : alone && !session.working ? "left" : "";
    shown.push({ id: run.id, began: run.began, blocks: run.blocks, live, left, node: run.node });
  }
  return shown;
}

function WorkBar({ fresh }: { fresh: boolean }) {
  const [open, setOpen] = useState(false);
  const run = (word: string) =>
    attempt(async () => {
      const body = await change<{ title: string; entry: number | null }>(word);
      toast(`${body.title} (entry ${body.entry})`);
    });
  const choose = (id: string) =>
    attempt(async () => {
      setConversation(await post<SessionState>("/conversation", { id }));
      setOpen(false);
    });
  return (
    <div className="bar work-bar">
      <Button onClick={() => choose("")} disabled={fresh} title="a new conversation">
        <Icon name="plus" />
        New
      </Button>
      <Button onClick={() => setOpen(true)} title="go on with an earlier conversation">
        <Icon name="time" />
        Earlier…
      </Button>
      <span className="spring" />
      <Button tone="quiet" onClick={() => run("undo")} title="take back the newest entry">
        <Icon name="undo" />
        Undo
      </Button>
      <Button tone="quiet" onClick={() => run("redo")} title="bring back what the last undo took">
        <Icon name="redo" />
        Redo
      </Button>
      <Dialog title="Conversations" open={open} onClose={() => setOpen(false)}>
        {open && <Conversations onChoose={choose} />}
      </Dialog>
    </div>
  );
}

function Conversations({ onChoose }: { onChoose: (id: string) => void }) {
  const rows = useLoaded(() => get<ConversationRow[]>("/conversations"), "");
  return (
    <>
      <Trouble error={rows.error} />
      {rows.value?.length === 0 && <Empty>No conversation is kept yet.</Empty>}
      <ul className="plain-list">
        {rows.value?.map((row) => (
          <li key={row.id}>
            <button type="button" className="row-button" onClick={() => onChoose(row.id)}>
              <span className="ellipsis">{row.title || row.id}</span>
              <span className="dim nowrap">
                {plural(row.turns, "turn")} · {day(row.last || row.started)}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function Conversation({ runs, told, loading }: { runs: Shown[]; told: Told[]; loading: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [drawn, setDrawn] = useState(WINDOW);
  const total = runs.reduce((sum, run) => sum + run.blocks.length, 0);
  const hidden = Math.max(0, total - drawn);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever is drawn anew, the end stays in sight
  useLayoutEffect(() => {
    if (stuck.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [runs, told]);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (stuck.current && box.current) box.current.scrollTop = box.current.scrollHeight;
    });
    observer.observe(box.current!.firstElementChild!);
    return () => observer.disconnect();
  }, []);
  let skip = hidden;
  return (
    <div
      ref={box}
      className="conversation"
      role="log"
      aria-label="conversation"
      tabIndex={0}
      onScroll={({ currentTarget: node }) => {
        stuck.current = node.scrollHeight - node.scrollTop - node.clientHeight < 60;
      }}
    >
      <div className="runs">
        {loading && <Spinner label="the conversation is read" />}
        {!loading && total === 0 && told.length === 0 && <Welcome />}
        {hidden > 0 && (
          <Button className="earlier" onClick={() => setDrawn(drawn + 4 * WINDOW)}>
            Show {Math.min(hidden, 4 * WINDOW)} earlier of {hidden}
          </Button>
        )}
        {runs.map((run, at) => {
          const from = Math.min(skip, run.blocks.length);
          skip -= from;
          const before = told.filter(({ time }) => time < run.began && (at === 0 || time >= runs[at - 1]!.began));
          return (
            <Fragment key={run.id}>
              <Commands told={before} />
              {(from < run.blocks.length || run.live) && <Run run={run} from={from} />}
            </Fragment>
          );
        })}
        <Commands told={told.filter(({ time }) => !runs.length || time >= runs.at(-1)!.began)} />
      </div>
    </div>
  );
}

/** Commands that the user typed, and what they said. */
function Commands({ told }: { told: Told[] }) {
  const asked = useStore((store) => store.session?.asked != null);
  return told.map(({ id, line, text, failed, open }) => (
    <article key={id} className="run" aria-label={`command ${line}`}>
      <div className="said">
        <span className="mono">{line}</span>
      </div>
      {text && <Output label={`what ${line} says`} text={plain(text)} />}
      {failed && <Badge tone="bad">failed</Badge>}
      {open && !asked && (
        <div className="dim live">
          <Spinner /> at work
        </div>
      )}
    </article>
  ));
}

function Welcome() {
  const name = useStore((store) => store.session?.name);
  const model = useStore((store) => store.session?.model);
  const asks = useStore((store) => store.session?.choices.approval !== "never");
  return (
    <div className="welcome">
      <h2>{name}</h2>
      <p>
        Say what is to be done. Work happens on a bench, a copy of the workspace, and the checks prove it there.{" "}
        {asks ? "Nothing is promoted before you say yes." : "What they prove is promoted, and you are not asked."}
      </p>
      {!model && (
        <p>
          No model is configured. Failing tests can be repaired without one; <a href="#/settings">Settings</a> say what
          there is.
        </p>
      )}
    </div>
  );
}

function Run({ run, from }: { run: Shown; from: number }) {
  const blocks = from ? run.blocks.slice(from) : run.blocks;
  const said = useMemo(
    () => run.blocks.flatMap((block) => (block.kind === "text" && !block.sentBack ? [block.text] : [])).join("\n"),
    [run.blocks],
  );
  return (
    <article className="run" aria-label={`run ${run.id}`}>
      <div className="run-head dim">
        <span className="mono">{run.id}</span> {clock(run.began)}
      </div>
      {blocks.map((block) => (
        <BlockView
          key={`${block.kind}${block.id}`}
          block={block}
          live={run.live}
          said={block.kind === "report" ? said : ""}
        />
      ))}
      {run.live && (
        <div className="dim live">
          <Spinner /> {run.node || "begins"}
        </div>
      )}
      {run.left === "elsewhere" && <Badge tone="busy">at work in another process</Badge>}
      {run.left === "left" && (
        <div className="actions">
          <Badge tone="warn">not at work here</Badge>
          <Button tone="primary" onClick={() => attempt(() => post(`/runs/${run.id}/resume`))}>
            Resume
          </Button>
        </div>
      )}
    </article>
  );
}

const BlockView = memo(({ block, live, said }: { block: Block; live: boolean; said: string }) => {
  switch (block.kind) {
    case "said":
      return (
        <div className="said">
          {block.steered && <Badge>steered</Badge>}
          <span>{block.text}</span>
        </div>
      );
    case "text":
      return block.sentBack ? (
        <details className="sent-back">
          <summary className="dim">an answer that does not count: {block.sentBack}</summary>
          <Markdown text={block.text} />
        </details>
      ) : (
        <ModelSays text={block.text} />
      );
    case "thought":
      return (
        <details className="thought">
          <summary className="dim">thoughts · {plural(block.text.split(/\s+/).length, "word")}</summary>
          <Markdown text={block.text} />
        </details>
      );
    case "tool":
      return <ToolCard block={block} live={live} />;
    case "note":
      return <p className={`note ${block.tone}`}>{block.text}</p>;
    case "tasks":
      return (
        <ol className="tasks">
          {block.tasks.map((task, key) => (
            <li key={key}>{task}</li>
          ))}
        </ol>
      );
    case "check": {
      const { result } = block;
      const [sign, tone] = signOf(result.standing, result.advisory);
      return (
        <button type="button" className="check-line" onClick={() => go("proof")} title="show in Proof">
          <span className={tone}>{sign}</span> <span className="nowrap">{result.step}</span>
          <span className="dim ellipsis"> {result.reason || tests(result.counts)}</span>
          <span className="dim nowrap">{result.seconds >= 0.05 && seconds(result.seconds)}</span>
        </button>
      );
    }
    case "report":
      return <Delivery report={block.report} said={said} />;
  }
});

/** Asks for the state again when the page comes back into sight. */
export function useRefreshOnReturn(): void {
  useEffect(() => {
    const seen = () => {
      if (!document.hidden) void refresh();
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);
}
