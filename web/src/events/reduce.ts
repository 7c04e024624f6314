/** From the event stream to what the page shows: one pure function over batches of events. */

import type { Attempt, CheckResult, Choices, Question, Report, StreamEvent, ToolCall, Turn } from "../types";

export type Tone = "note" | "warning";

/** One thing in the conversation, in the order in which it happened. */
export type Block = { id: number } & (
  | { kind: "said"; text: string; steered: boolean }
  | { kind: "text"; text: string; request: number; sentBack: string }
  | { kind: "thought"; text: string; request: number; whole: boolean }
  | { kind: "tool"; call: ToolCall; output: string[]; dropped: number; answer: ToolEnd | null; cut?: true }
  | { kind: "note"; tone: Tone; text: string }
  | { kind: "tasks"; tasks: string[] }
  | { kind: "check"; result: CheckResult }
  | { kind: "report"; report: Report }
);

export interface ToolEnd {
  text: string;
  failed: boolean;
  seconds: number;
  repeated: boolean;
}

export interface Meter {
  context_tokens: number;
  context_window: number;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
}

export interface LiveAttempt extends Attempt {
  number: number;
  time: string;
}

/** All that is known of a run from its events. */
export interface RunView {
  id: string;
  conversation: string;
  request: string;
  began: string;
  ended: string;
  terms: Partial<Choices>;
  state: Report["state"];
  node: string;
  blocks: Block[];
  checks: CheckResult[];
  attempts: LiveAttempt[];
  tiers: { name: string; time: string; left: string }[];
  meter: Meter | null;
  question: Question | null;
  report: Report | null;
  /** Whether its beginning was seen; otherwise the conversation's record tells more. */
  whole: boolean;
  request_number: number;
  /** Counts the calls that changed files of its bench. */
  edits: number;
  /** The call under way has changed some. */
  editing: boolean;
}

export interface EventState {
  last: number;
  runs: ReadonlyMap<string, RunView>;
  /** Counts what makes `GET /api/state` worth asking again. */
  stateAsked: number;
  /** Counts what may have changed files of the workspace. */
  filesChanged: number;
  /** What the checks of the workspace have said so far; null while none of them works. */
  checking: CheckResult[] | null;
}

export const EMPTY: EventState = { last: 0, runs: new Map(), stateAsked: 0, filesChanged: 0, checking: null };

/** Lines of a command's output that are kept; of more, the first are dropped and counted. */
export const KEPT_LINES = 2000;

function newRun(id: string, time: string): RunView {
  return {
    id,
    conversation: "",
    request: "",
    began: time,
    ended: "",
    terms: {},
    state: "working",
    node: "",
    blocks: [],
    checks: [],
    attempts: [],
    tiers: [],
    meter: null,
    question: null,
    report: null,
    whole: false,
    request_number: 0,
    edits: 0,
    editing: false,
  };
}

/** The state after these events. Runs that none of them concerns keep their identity. */
export function reduce(state: EventState, events: readonly StreamEvent[]): EventState {
  const drafts = new Map<string, RunView>();
  let { last, stateAsked, filesChanged, checking } = state;
  for (const event of events) {
    if (event.id !== null) {
      if (event.id <= last) continue;
      last = event.id;
    }
    if (event.type === "StateChanged") stateAsked += 1;
    if (checking && event.type === "CheckResult" && !event.run) checking = withCheck(checking, event.body);
    if (!event.run) continue;
    if (["RunBegun", "RunEnded", "ApprovalAsked", "QueueChanged"].includes(event.type)) stateAsked += 1;
    if (event.type === "RunEnded") filesChanged += 1;
    let run = drafts.get(event.run);
    if (!run) {
      const old = state.runs.get(event.run);
      run = old ? { ...old, blocks: [...old.blocks], checks: [...old.checks] } : newRun(event.run, event.time);
      drafts.set(event.run, run);
    }
    apply(run, event, event.id ?? last);
  }
  if (last === state.last && checking === state.checking && stateAsked === state.stateAsked && drafts.size === 0)
    return state;
  const runs = drafts.size ? new Map([...state.runs, ...drafts]) : state.runs;
  return { last, runs, stateAsked, filesChanged, checking };
}

const withCheck = (checks: CheckResult[], one: CheckResult) => [
  ...checks.filter((other) => other.step !== one.step),
  one,
];

/** Changes the draft of one run; blocks that change are replaced, never mutated. */
function apply(run: RunView, { type, body, time }: StreamEvent, id: number): void {
  const add = (block: Block) => run.blocks.push(block);
  const note = (text: string, tone: Tone = "note") => add({ id, kind: "note", tone, text });
  switch (type) {
    case "RunBegun":
      run.conversation = body.conversation ?? run.conversation;
      if (body.resumed && run.state !== "waiting") {
        cutShort(run);
        note("resumed");
      }
      run.state = "working";
      run.ended = "";
      run.report = null;
      run.terms = body.order ?? {};
      if (!body.resumed) {
        run.request = body.order?.text ?? "";
        run.began = time;
        run.whole = true;
        add({ id, kind: "said", text: run.request, steered: false });
      }
      if (!run.request) run.request = body.order?.text ?? "";
      break;
    case "NodeEntered":
      run.node = body.place?.at ?? "";
      if (run.state === "waiting") run.state = "working";
      if (run.node !== "approve") run.question = null;
      if (run.node === "verify") run.checks = [];
      break;
    case "TasksPlanned":
      if (body.tasks.length > 1) add({ id, kind: "tasks", tasks: body.tasks });
      break;
    case "RequestSent":
      run.request_number += 1;
      break;
    case "TextDelta":
      grow(run, "text", body.text, id);
      break;
    case "ThoughtDelta":
      grow(run, "thought", body.text, id);
      break;
    case "ReasoningShown":
      dropThoughts(run);
      add({ id, kind: "thought", text: body.text, request: run.request_number, whole: true });
      break;
    case "Retrying":
      forget(run);
      note(`${body.why}; trying again${body.wait_seconds ? ` in ${seconds(body.wait_seconds)}` : ""}`, "warning");
      break;
    case "FellBack":
      forget(run);
      note(`${body.model} failed (${body.why}); ${body.to} takes over`, "warning");
      break;
    case "Corrected":
      if (!sendBack(run, body.why)) note(`the answer was sent back: ${body.why}`);
      break;
    case "ToolStarted":
      add({ id, kind: "tool", call: body.call, output: [], dropped: 0, answer: null });
      break;
    case "CommandPrinted":
      print(run, body.line);
      break;
    case "ToolEnded":
      endTool(run, body, id);
      run.edits += Number(run.editing);
      run.editing = false;
      break;
    case "FilesChanged":
      run.editing = true;
      break;
    case "Steered":
      add({ id, kind: "said", text: body.text, steered: true });
      break;
    case "Shortened":
      note(`old tool outputs were taken out: ${body.before_tokens} tokens to ${body.after_tokens}`);
      break;
    case "Metered":
      run.meter = { ...body, cost: amount(body.cost) };
      break;
    case "Warned":
    case "EscalationWarned":
      note(body.text, "warning");
      break;
    case "HookSaid":
      note(`${body.event} hook: ${body.text}`);
      break;
    case "CheckResult":
      run.checks = withCheck(run.checks, body);
      add({ id, kind: "check", result: body });
      break;
    case "ApprovalAsked":
      run.state = "waiting";
      run.question = body.question;
      break;
    case "TierBegun":
      run.tiers = [...run.tiers, { name: body.tier.name, time, left: "" }];
      note(`tier ${body.number} of ${body.of}: ${body.tier.name}`);
      break;
    case "TierLeft":
      run.tiers = run.tiers.map((one, at) => (at === run.tiers.length - 1 ? { ...one, left: body.reason } : one));
      note(`${body.tier} left: ${body.reason}`);
      break;
    case "AttemptEnded":
      run.attempts = [...run.attempts, attempt(body, time)];
      break;
    case "ClimbEnded":
      note(`escalation ended: ${body.reason || body.why}`);
      break;
    case "RunEnded":
      end(run, body.report, time, id);
      break;
  }
}

/** Money of an event, which is written as text so that no digit is lost. */
const amount = (value: string | number | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

function end(run: RunView, report: Report, time: string, id: number): void {
  run.state = report.state;
  run.report = report;
  run.question = report.state === "waiting" ? report.question : null;
  run.conversation = report.conversation || run.conversation;
  if (report.state !== "waiting") {
    run.ended = time;
    run.blocks = run.blocks.filter((block) => block.kind !== "report");
    run.blocks.push({ id, kind: "report", report });
  }
}

function attempt(body: { number: number; attempt: Record<string, unknown> }, time: string): LiveAttempt {
  const { at, end: ended, ...rest } = body.attempt as { at?: { tier: number; number: number }; end?: string };
  const cost = amount((rest as { cost?: string | null }).cost);
  const place = at ? { tier: at.tier, iteration: at.number } : {};
  return { ended, ...place, ...rest, cost, number: body.number, time } as unknown as LiveAttempt;
}

function grow(run: RunView, kind: "text" | "thought", text: string, id: number): void {
  const at = run.blocks.length - 1;
  const last = run.blocks[at];
  if (last?.kind === kind && last.request === run.request_number && !(last.kind === "thought" && last.whole))
    run.blocks[at] = { ...last, text: last.text + text };
  else if (kind === "text") run.blocks.push({ id, kind, text, request: run.request_number, sentBack: "" });
  else run.blocks.push({ id, kind, text, request: run.request_number, whole: false });
}

const ofRequest = (run: RunView) => (block: Block) =>
  (block.kind === "text" || block.kind === "thought") && block.request === run.request_number;

/** An attempt that failed does not count: what it had streamed goes. */
function forget(run: RunView): void {
  const streamed = ofRequest(run);
  run.blocks = run.blocks.filter((block) => !streamed(block));
}

/** The whole reasoning of a step takes the place of what was streamed of it. */
function dropThoughts(run: RunView): void {
  run.blocks = run.blocks.filter((block) => !(block.kind === "thought" && block.request === run.request_number));
}

/** A run that goes on leaves its stop behind; a call that was under way then is made anew. */
function cutShort(run: RunView): void {
  run.blocks = run.blocks
    .filter((block) => block.kind !== "report")
    .map((block) => (block.kind === "tool" && !block.answer ? { ...block, cut: true } : block));
}

/** Marks the words of the latest request; whether there are any. */
function sendBack(run: RunView, why: string): boolean {
  const streamed = ofRequest(run);
  run.blocks = run.blocks.map((block) =>
    block.kind === "text" && streamed(block) ? { ...block, sentBack: why || "it had a known fault" } : block,
  );
  return run.blocks.some((block) => block.kind === "text" && streamed(block));
}

function print(run: RunView, line: string): void {
  const at = run.blocks.findLastIndex((block) => block.kind === "tool" && !block.answer && !block.cut);
  const block = run.blocks[at];
  if (block?.kind !== "tool") return;
  const over = Math.max(0, block.output.length + 1 - KEPT_LINES);
  run.blocks[at] = { ...block, output: [...block.output.slice(over), line], dropped: block.dropped + over };
}

function endTool(
  run: RunView,
  body: { call: ToolCall; answer: { text: string; failed: boolean }; seconds: number; repeated?: boolean },
  id: number,
): void {
  const answer = { ...body.answer, seconds: body.seconds, repeated: body.repeated ?? false };
  const at = run.blocks.findLastIndex((block) => block.kind === "tool" && block.call.id === body.call.id && !block.cut);
  const block = run.blocks[at];
  if (block?.kind === "tool") run.blocks[at] = { ...block, answer };
  else run.blocks.push({ id, kind: "tool", call: body.call, output: [], dropped: 0, answer });
}

export function seconds(value: number): string {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 90) return `${Math.round(value)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** The kept turns of a conversation as blocks by run, for what happened before the events that are there. */
export function turnsToBlocks(turns: readonly Turn[]): Map<string, Block[]> {
  const runs = new Map<string, Block[]>();
  for (const turn of turns) {
    const blocks = runs.get(turn.run) ?? [];
    runs.set(turn.run, blocks);
    const id = -turn.number * 100;
    if (turn.reasoning) blocks.push({ id: id - 1, kind: "thought", text: turn.reasoning, request: 0, whole: true });
    if (turn.speaker === "pawl") continue; // words to the model that nobody typed
    if (turn.text && turn.speaker === "user")
      blocks.push({ id: id - 2, kind: "said", text: turn.text, steered: false });
    else if (turn.text) blocks.push({ id: id - 2, kind: "text", text: turn.text, request: 0, sentBack: "" });
    for (const [number, call] of turn.calls.entries())
      blocks.push({ id: id - 3 - number, kind: "tool", call, output: [], dropped: 0, answer: null });
    for (const result of turn.results) {
      const at = blocks.findLastIndex((block) => block.kind === "tool" && block.call.id === result.call);
      const block = blocks[at];
      if (block?.kind === "tool")
        blocks[at] = { ...block, answer: { text: result.text, failed: result.failed, seconds: 0, repeated: false } };
    }
  }
  return runs;
}
