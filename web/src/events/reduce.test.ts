import { describe, expect, it } from "vitest";
import { parseEvents } from "../api";
import type { Report, StreamEvent, Turn } from "../types";
import { type Block, EMPTY, type EventState, KEPT_LINES, reduce, turnsToBlocks } from "./reduce";

const event = (type: string, body: object, run = "r1"): StreamEvent => ({
  id: 0,
  run,
  time: "2026-01-31T09:30:00+00:00",
  type,
  body,
});
/** The events as the stream brings them, with ids that grow. */
const follow = (state: EventState, ...events: StreamEvent[]) =>
  reduce(
    state,
    events.map((one, at) => ({ ...one, id: state.last + 1 + at })),
  );
const begun = (text = "fix it") => event("RunBegun", { run: "r1", conversation: "c1", order: { text } });
const sent = () => event("RequestSent", { number: 1 });
const said = (text: string) => event("TextDelta", { text });
const call = { id: "call_1", name: "run_command", arguments: { command: "pytest" } };
const report = (part: Partial<Report>) =>
  ({ run: "r1", state: "ended", conversation: "c1", question: null, ...part }) as Report;
const blocks = (...events: StreamEvent[]): Block[] => follow(EMPTY, ...events).runs.get("r1")!.blocks;
const texts = (list: Block[]) => list.flatMap((block) => (block.kind === "text" ? [block.text] : []));

describe("the reducer", () => {
  it("joins streamed text, and begins anew after a call", () => {
    const list = blocks(
      begun(),
      sent(),
      said("I "),
      said("look."),
      event("ToolStarted", { call }),
      sent(),
      said("Done."),
    );
    expect(list.map((block) => block.kind)).toEqual(["said", "text", "tool", "text"]);
    expect(texts(list)).toEqual(["I look.", "Done."]);
  });

  it("drops what an attempt had streamed when it is tried again", () => {
    const retry = event("Retrying", { why: "the connection was lost", wait_seconds: 2, attempt: 1 });
    expect(texts(blocks(begun(), sent(), said("half"), retry, said("whole")))).toEqual(["whole"]);
  });

  it("marks an answer that was sent back, so that it does not count", () => {
    const [text] = blocks(
      begun(),
      sent(),
      said("done"),
      event("Corrected", { name: "n", why: "nothing changed", text: "done" }),
    ).filter((block) => block.kind === "text");
    expect(text).toMatchObject({ sentBack: "nothing changed" });
  });

  it("puts the whole reasoning in the place of what was streamed of it", () => {
    const list = blocks(
      begun(),
      sent(),
      event("ThoughtDelta", { text: "hm" }),
      event("ReasoningShown", { text: "hm, so" }),
    );
    expect(list.filter((block) => block.kind === "thought")).toMatchObject([{ text: "hm, so", whole: true }]);
  });

  it("gives a command's lines to its call and keeps the last of them", () => {
    const lines = Array.from({ length: KEPT_LINES + 5 }, (_, at) => event("CommandPrinted", { line: `line ${at}` }));
    const end = event("ToolEnded", { call, answer: { text: "exit code 1", failed: true }, seconds: 2 });
    const [, tool] = blocks(begun(), event("ToolStarted", { call }), ...lines, end);
    expect(tool).toMatchObject({ dropped: 5, answer: { failed: true, seconds: 2 } });
    expect(tool?.kind === "tool" && tool.output[0]).toBe("line 5");
  });

  it("takes events that come twice after a lost connection only once", () => {
    const events = [begun(), sent(), said("once")].map((one, at) => ({ ...one, id: at + 1 }));
    const first = reduce(EMPTY, events);
    expect(reduce(first, events)).toBe(first);
    expect(texts(first.runs.get("r1")!.blocks)).toEqual(["once"]);
  });

  it("keeps the identity of runs and blocks that nothing concerns", () => {
    const first = follow(EMPTY, begun(), sent(), said("a"));
    const other = follow(first, event("Warned", { text: "w" }, "r2"));
    expect(other.runs.get("r1")).toBe(first.runs.get("r1"));
    const more = follow(other, said("b"));
    expect(more.runs.get("r1")!.blocks[0]).toBe(first.runs.get("r1")!.blocks[0]);
    expect(first.runs.get("r1")!.blocks).toHaveLength(2);
  });

  it("waits for an answer and goes on after it", () => {
    const question = { kind: "change", digest: "d", why: [], tool: "", arguments: {}, shown: [], flags: [] };
    const waits = follow(
      EMPTY,
      begun(),
      event("ApprovalAsked", { run: "r1", question }),
      event("RunEnded", { report: report({ state: "waiting", question: question as never }) }),
    );
    expect(waits.runs.get("r1")).toMatchObject({ state: "waiting", question: { digest: "d" } });
    expect(waits.runs.get("r1")!.blocks.some((block) => block.kind === "report")).toBe(false);
    const goes = follow(waits, event("RunBegun", { run: "r1", conversation: "c1", order: {}, resumed: true }));
    expect(goes.runs.get("r1")).toMatchObject({ state: "working", request: "fix it" });
    const ends = follow(goes, event("RunEnded", { report: report({ delivery: "DONE", verdict: "unverified" }) }));
    expect(ends.runs.get("r1")!.blocks.at(-1)).toMatchObject({ kind: "report", report: { verdict: "unverified" } });
  });

  it("shows the checks of the latest verification only", () => {
    const check = (step: string, standing: string) => event("CheckResult", { step, standing, findings: [], old: [] });
    const verify = event("NodeEntered", { place: { at: "verify" } });
    const state = follow(
      EMPTY,
      begun(),
      verify,
      check("syntax", "pass"),
      check("tests", "fail"),
      verify,
      check("syntax", "pass"),
    );
    expect(state.runs.get("r1")!.checks.map((one) => one.step)).toEqual(["syntax"]);
  });

  it("takes 2,000 events within the frames of a second, batch by batch", () => {
    const events = [begun(), sent(), ...Array.from({ length: 2000 }, (_, at) => (at % 20 ? said("word ") : sent()))];
    let state = EMPTY;
    for (let at = 0; at < events.length; at += 40) state = follow(state, ...events.slice(at, at + 40));
    expect(state.runs.get("r1")!.blocks).toHaveLength(101);
  });
});

describe("the event stream", () => {
  it("is split into whole events, and the rest waits", () => {
    const one = 'id: 1\ndata: {"id":1,"type":"Warned"}\n\n: beat\n\nid: 2\ndata: {"id"';
    expect(parseEvents(one)).toEqual({ events: [{ id: 1, type: "Warned" }], rest: 'id: 2\ndata: {"id"' });
  });
});

describe("the record of a conversation", () => {
  it("becomes blocks, with results at their calls", () => {
    const turn = (part: Partial<Turn>): Turn => ({
      number: 1,
      time: "",
      run: "r1",
      speaker: "assistant",
      text: "",
      calls: [],
      results: [],
      reasoning: "",
      ...part,
    });
    const list = turnsToBlocks([
      turn({ speaker: "user", text: "fix it" }),
      turn({ number: 2, text: "I look.", calls: [call] }),
      turn({ number: 4, speaker: "pawl", text: "Your answer names no place." }),
      turn({ number: 3, speaker: "user", results: [{ call: "call_1", text: "out", failed: true }] }),
    ]).get("r1")!;
    expect(list.map((block) => block.kind)).toEqual(["said", "text", "tool"]);
    expect(list[2]).toMatchObject({ answer: { text: "out", failed: true } });
    expect(new Set(list.map((block) => block.id)).size).toBe(3);
  });
});
