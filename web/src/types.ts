/** The values of the server's JSON, in the words of CONTEXT.md. */

export interface Budget {
  money: string | null;
  seconds: number | null;
}

/** The user's own choices; a run never changes them. */
export interface Choices {
  mode: "agent" | "chat" | "plan";
  approval: "each" | "final" | "never";
  model: string;
  reasoning: "" | "on" | "off";
  budget: Budget;
}

/** The question that a run waits on. */
export interface Question {
  kind: "change" | "call";
  digest: string;
  why: string[];
  tool: string;
  arguments: Record<string, unknown>;
  shown: string[];
  flags: string[];
}

/** A question of a command such as `/commit`. */
export interface Asked {
  id: number;
  question: string;
  /** What may be answered; anything where there are none. */
  choices: { key: string; label: string }[];
  /** A text to be edited. */
  draft: string | null;
  /** What it is about, where the command has not said that before. */
  shown: string;
  why: string;
}

/** What a command has said that was typed as a request. */
export interface Told {
  id: number;
  time: string;
  line: string;
  text: string;
  failed: boolean;
  open: boolean;
}

export interface SessionState {
  version: string;
  workspace: string;
  name: string;
  model: string;
  models: string[];
  choices: Choices;
  conversation: string;
  working: boolean;
  run: string | null;
  /** The newest run, where nobody is at work on it before its end. */
  left: string | null;
  /** Runs that another process is at work on. */
  elsewhere: string[];
  waiting: { run: string; question: Question } | null;
  queued: string[];
  /** Why the latest request could not begin. */
  trouble?: { error: string; message: string; advice: string } | null;
  /** What a command asks the user. */
  asked?: Asked | null;
  /** Counts what commands say. */
  said: number;
  last_event: number;
  /** The newest entry of the history. */
  entry: number;
  /** The build of the page that is served now, and what there is to tell of it. */
  page: { build: string; note: string };
}

export interface Counts {
  passed: number;
  failed: number;
  errors: number;
  skipped: number;
}

export interface Place {
  path: string;
  line: number;
  column?: number;
}

export interface Diagnostic extends Place {
  tool: string;
  message: string;
  severity: "error" | "warning" | "note";
  code: string;
  test: string;
  frames: Place[];
}

export interface TestRun {
  id: string;
  outcome: "passed" | "failed" | "skipped";
  seconds: number;
}

export type Standing = "pass" | "fail" | "skipped";

/** How one step of verification ended. */
export interface CheckResult {
  step: string;
  standing: Standing;
  reason: string;
  findings: Diagnostic[];
  old: Diagnostic[] | number;
  counts: Counts | null;
  seconds: number;
  incomplete?: string;
  command?: string[];
  ran?: TestRun[];
  flaky?: string[];
  part?: string;
  left_out?: string[];
  advisory?: boolean;
}

export interface ChangeRow {
  path: string;
  what: string;
  added: number;
  removed: number;
  binary: boolean;
}

export interface Attempt {
  tier: number;
  iteration: number;
  sample: number;
  mode: string;
  model: string;
  ended: string;
  failing: string[] | null;
  paths: string[];
  refused: string[];
  better?: boolean;
  /** The model's own account, the first changed lines, and what the checks found. */
  said?: string;
  diff?: string[];
  messages?: string[];
  cost?: number | null;
  cost_usd?: number | null;
  tokens: number;
  seconds: number;
}

/** The report of a run, as `pawl do --json` prints it. */
export interface Report {
  run: string;
  state: "working" | "waiting" | "ended";
  intent: string | null;
  delivery: "DONE" | "PARTLY" | "NEEDS_WORK" | "UNVERIFIED" | null;
  verdict: "verified" | "failed" | "unverified" | "nothing to prove" | null;
  answer: string;
  before: Counts | null;
  after: Counts | null;
  verdicts: { step: string; standing: Standing; reason: string }[];
  refused: string[];
  unproved: string[];
  notes: string[];
  tasks: string[];
  task_states: { number: number; what: string; state: string; reason: string; entry: number | null }[];
  changes: ChangeRow[];
  entry: number | null;
  kept: number | null;
  alternatives: [number, string][];
  commit: string;
  question: Question | null;
  stale: string;
  rejected: string | null;
  review: { summary: string; findings: string[]; blocking: number; missing_tests: string[] } | null;
  score: number | null;
  trouble: { error: string; message: string; advice: string } | null;
  ended: string;
  model: string;
  conversation: string;
  requests: number;
  usage: { input_tokens: number; output_tokens: number; cached_tokens: number };
  cost_usd: number | null;
  seconds: number;
  exit_code: number;
  loop: { failing: string[]; attempts: Attempt[] } | null;
}

/** What `pawl verify --json` prints. */
export interface Verified {
  accepted: boolean;
  verdict: NonNullable<Report["verdict"]>;
  refused: string[];
  unproved: string[];
  notes: string[];
  seconds: number;
  steps: CheckResult[];
}

export interface Hunk {
  number: number;
  header: string;
  lines: string[];
}

export interface ChangedFile extends ChangeRow {
  before: string | null;
  after: string | null;
  hunks: Hunk[];
}

export interface Change {
  digest: string;
  patch: string;
  files: ChangedFile[];
}

export interface RunRow {
  id: string;
  created: string;
  state: Report["state"];
  node: string;
  request: string;
  mode: string;
  delivery: Report["delivery"];
}

export interface ConversationRow {
  id: string;
  title: string;
  started: string;
  last: string;
  turns: number;
}

export interface Turn {
  number: number;
  time: string;
  run: string;
  speaker: string;
  text: string;
  calls: ToolCall[];
  results: { call: string; text: string; failed: boolean }[];
  reasoning: string;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: Record<string, unknown> | null;
  raw?: string;
  mistake?: string;
}

/** One event of the stream; `id` is null for what only concerns this server. */
export interface StreamEvent {
  id: number | null;
  run: string;
  time: string;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are as many shapes as there are events; the reducer reads them
  body: any;
}

export interface TreeEntry {
  name: string;
  path: string;
  kind: "file" | "directory" | "link";
  size: number;
  ignored: boolean;
  secret: boolean;
}

export interface FileText {
  path: string;
  text: string | null;
  digest: string;
  size: number;
  binary: boolean;
  why: string;
}

export interface Saved {
  digest: string;
  text: string;
  merged: boolean;
  entry: number | null;
}

export interface OutlineRow {
  name: string;
  kind: string;
  line: number;
  end: number;
  depth: number;
}

export interface Definition {
  path: string;
  line: number;
  name: string;
  kind: string;
}

export interface Entry {
  id: number;
  run: string;
  kind: string;
  title: string;
  reason: string;
  created: string;
  state: string;
  /** How many. */
  paths: number;
  changed: string[];
  reverses: number | null;
  reversed_by: number | null;
  pruned: boolean;
}

export interface Checkpoint {
  id: number;
  name: string;
  created: string;
  after_entry: number | null;
  changes: string[];
}

export interface RequestRow {
  time: string;
  run: string;
  stage: string;
  role: string;
  model: string;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost_usd: number | null;
  seconds: number;
  ended: string;
}

/** A request that waits for a worker, or what became of it. */
export interface Job {
  id: number;
  standing: string;
  request: string;
  reason: string;
  workspace: string;
  created: string;
  started: string | null;
  ended: string | null;
}
