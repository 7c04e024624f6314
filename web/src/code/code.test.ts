import { describe, expect, it } from "vitest";
import { DELIVERY, plain, signOf, VERDICT } from "../format";
import { points } from "../panes/points";
import { perRun } from "../panes/spent";
import { parseRoute } from "../place";
import type { FileText, RequestRow } from "../types";
import { afterConflict, afterRead, afterSave, opened, resolved } from "./files";
import { rank } from "./rank";

const disk = (text: string | null, digest: string): FileText => ({
  path: "a.py",
  text,
  digest,
  size: 1,
  binary: false,
  why: text === null ? "binary" : "",
});

describe("a file that is edited", () => {
  const { file } = opened(disk("one", "d1"));

  it("takes over what was saved", () => {
    const saved = { text: "two", digest: "d2", merged: false, entry: 1 };
    expect(afterSave(file, "two", "two", saved)).toMatchObject({ doc: "two", file: { base: "two", digest: "d2" } });
  });

  it("shows what a merge made of it", () => {
    const saved = { text: "two\ntheirs", digest: "d2", merged: true, entry: 1 };
    expect(afterSave(file, "two", "two", saved)).toMatchObject({ doc: "two\ntheirs", file: { base: "two\ntheirs" } });
  });

  it("keeps what was typed while it was saved, and merges it with the next save", () => {
    const saved = { text: "two\ntheirs", digest: "d2", merged: true, entry: 1 };
    expect(afterSave(file, "two", "two, more", saved)).toEqual({ doc: "two, more", file: { ...file, changed: true } });
    const plainly = { text: "two", digest: "d2", merged: false, entry: 1 };
    expect(afterSave(file, "two", "two, more", plainly)).toMatchObject({
      doc: "two, more",
      file: { base: "two", digest: "d2" },
    });
  });

  it("is not replaced by what changed on disk, unless nothing was typed", () => {
    expect(afterRead(file, "mine", disk("theirs", "d2"))).toEqual({ doc: "mine", file: { ...file, changed: true } });
    expect(afterRead(file, "one", disk("theirs", "d2"))).toMatchObject({ doc: "theirs", file: { digest: "d2" } });
    expect(afterRead(file, "mine", disk("one", "d1"))).toEqual({ doc: "mine", file });
  });

  it("goes on from what is on disk once a conflict was looked at", () => {
    const met = afterConflict(file, disk("theirs", "d2"));
    expect(met).toMatchObject({ base: "one", conflict: { text: "theirs", digest: "d2" } });
    expect(resolved(met)).toMatchObject({ base: "theirs", digest: "d2", conflict: null });
  });

  it("says why it is not shown", () => {
    expect(opened(disk(null, "d")).file.why).toBe("binary");
  });
});

describe("what is shown", () => {
  it("finds a file by letters of its path, its name first", () => {
    const paths = ["src/deep/application.py", "app.py", "tests/test_app.py", "a/p/p.md"];
    expect(rank("app", paths)).toEqual(["app.py", "src/deep/application.py", "tests/test_app.py", "a/p/p.md"]);
  });

  it("has an address for a place, whatever is in it", () => {
    expect(parseRoute("#/code/src/a%20b.py:12")).toEqual({ pane: "code", path: "src/a b.py", line: 12 });
    expect(parseRoute("#/code/%E0%A4%A")).toMatchObject({ path: "%E0%A4%A" });
    expect(parseRoute("#/<script>")).toMatchObject({ pane: "work" });
    expect(parseRoute("")).toMatchObject({ pane: "work" });
  });

  it("leaves out what only a terminal understands", () => {
    expect(plain("\u001b[31mred\u001b[0m\u001b]0;title\u0007\u0008 x\ty\n")).toBe("red x\ty\n");
  });

  it("calls nothing good but what is done or verified", () => {
    expect(Object.entries(VERDICT).filter(([, tone]) => tone === "good")).toEqual([["verified", "good"]]);
    expect(
      Object.entries(DELIVERY)
        .filter(([, [, tone]]) => tone === "good")
        .map(([key]) => key),
    ).toEqual(["DONE"]);
  });

  it("tells findings that do not count in a sign of their own", () => {
    expect(signOf("fail")).toEqual(["✗", "bad"]);
    expect(signOf("fail", true)).toEqual(["!", "warn"]);
    expect(signOf("pass", true)).toEqual(["✓", "good"]);
  });

  it("sums requests by run, and knows no cost where one price is unknown", () => {
    const row = (run: string, cost_usd: number | null) =>
      ({ run, cost_usd, input_tokens: 10, output_tokens: 1 }) as RequestRow;
    expect(perRun([row("r1", 0.5), row("r2", null), row("r1", 0.25), row("r2", 1)])).toEqual([
      { run: "r1", cost: 0.75, input: 20, output: 2 },
      { run: "r2", cost: null, input: 20, output: 2 },
    ]);
  });

  it("puts runs, entries and checkpoints on one line of time", () => {
    const all = points(
      [{ id: "r1", created: "2026-01-31T09:30:00+00:00" } as never],
      [{ id: 1, created: "2026-01-31T10:00:00+00:00" } as never],
      [{ id: 1, created: "2026-01-31T10:45:00+01:00" } as never],
    );
    expect(all.map((point) => point.key)).toEqual(["e1", "c1", "rr1"]);
  });
});
