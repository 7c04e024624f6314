import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import skill from "../../.pawl/skills/page/SKILL.md?raw";
import type { ChangedFile } from "../types";
import { DiffView } from "./DiffView";
import { answerHunks, choose, editOf, numbers, pairs, parsePatch, rows, standing } from "./diff";
import gallery from "./Gallery.tsx?raw";
import * as library from "./index";
import { Markdown } from "./Markdown";
import { safeAddress, splitBlocks } from "./markdown";
import { niceTop } from "./Plot";

describe("the library", () => {
  it("is shown by the gallery and named by the skill, part by part", () => {
    const parts = Object.keys(library).filter((name) => /^[A-Z]/.test(name));
    expect(parts.length).toBeGreaterThan(15);
    const tags = new Set([...gallery.matchAll(/<(\w+)/g)].map(([, name]) => name));
    // The place of toasts is in the shell; the gallery makes some.
    expect(parts.filter((name) => !tags.has(name) && name !== "Toasts")).toEqual([]);
    expect(parts.filter((name) => !skill.includes(`\`${name}\``))).toEqual([]);
  });
});

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} />);

describe("rows", () => {
  const marks = (...lines: string[]) => rows({ number: 1, header: "@@ -1 +1 @@", lines }).map((row) => row.mark);

  it("mark what changed within lines that took the place of others, and no letter in its middle", () => {
    expect(marks("-if a == root:", "+if a == z:", " b")).toEqual([[8, 12], [8, 9], undefined]);
    expect(marks("-        one", "+        something else")).toEqual([undefined, undefined]);
    expect(marks("-say 😀 now", "+say 😁 now")).toEqual([
      [4, 6],
      [4, 6],
    ]);
    expect(marks("+one", "+two")).toEqual([undefined, undefined]);
  });
});

describe("Markdown", () => {
  it("draws the usual forms", () => {
    expect(html("# A\n\nb **c** `d` ~~e~~\n\n1. one\n2. two\n   - in\n\n```py\nx < 1\n```")).toBe(
      '<div class="markdown"><h3>A</h3><p>b <strong>c</strong> <code>d</code> <s>e</s></p>' +
        '<ol start="1"><li>one</li><li><p>two</p><ul><li>in</li></ul></li></ol>' +
        '<pre tabindex="0" data-language="py"><code>x &lt; 1</code></pre></div>',
    );
    expect(html("| a | b |\n|---|---|\n| 1 | `x\\|y` |")).toContain("<td><code>x|y</code></td>");
    expect(html("- [x] done\n- [ ] open")).toContain('type="checkbox"');
    expect(html("see `src/app.py:12`")).toContain('href="#/code/src/app.py:12"');
  });

  it.each([
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "<svg/onload=alert(1)>",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "| <b>a</b> |\n|---|\n| <iframe src=//evil.example> |",
    '[x](https://e.org/"onmouseover="alert(1))',
    "<style>*{display:none}</style>",
  ])("shows hostile text as text: %s", (text) => {
    const drawn = html(text);
    expect(drawn).not.toMatch(/<(script|img|svg|iframe|style|b)\b/i);
    expect(drawn).not.toMatch(/<[^>]* on\w+=/i);
  });

  it.each([
    "javascript:alert(1)",
    " java\nscript:alert(1)",
    "JAVASCRIPT:alert(1)",
    "data:text/html,<script>1</script>",
    "vbscript:x",
    "//evil.example",
    "\u0001javascript:alert(1)",
    "file:///etc/passwd",
  ])("follows no such address: %s", (address) => {
    expect(safeAddress(address)).toBeNull();
    expect(html(`[click](${address})`)).not.toContain("<a ");
  });

  it("shows where a link leads, and loads no image", () => {
    expect(html("[here](https://evil.example/?q=1)")).toContain("(https://evil.example/?q=1)");
    expect(html("[here](https://evil.example)")).toContain('rel="noreferrer noopener"');
    const image = html("![secret](https://evil.example/a.png?key=1)");
    expect(image).toContain("not loaded");
    expect(image).not.toContain("<img");
  });

  it("draws a streamed text at every length", () => {
    const text = "# T\n\n- a\n  - b\n\n```js\nlet x\n```\n\n**bold [link](https://e.org) `c";
    for (let end = 0; end <= text.length; end += 1) expect(html(text.slice(0, end))).toContain("markdown");
  });

  it.each(["*", "[", "`", "_a", "![](", "> ", "- ", "| "])("ends with long runs of %s", (mark) => {
    expect(html(mark.repeat(3000)).length).toBeGreaterThan(0);
  });

  it("keeps blocks that do not change, so that only the last is drawn anew", () => {
    const text = "one\n\n```\na\n\nb\n```\n\n- x\n\n  y\n- z\n\nlast";
    expect(splitBlocks(text)).toEqual(["one", "```\na\n\nb\n```", "- x\n\n  y\n- z\n", "last"]);
    expect(splitBlocks(`${text} more`).slice(0, 3)).toEqual(splitBlocks(text).slice(0, 3));
  });
});

const file = (path: string, ...hunks: number[]): ChangedFile => ({
  path,
  what: "changed",
  added: 1,
  removed: 1,
  binary: false,
  before: "",
  after: "",
  hunks: hunks.map((number) => ({ number, header: "@@ -3,2 +3,2 @@", lines: [" a", "-b", "+c"] })),
});

describe("hunks", () => {
  const files = [file("a.py", 1, 2), file("b.py", 3)];

  it("are chosen one by one or by file", () => {
    const all = new Set(numbers(files));
    expect(answerHunks(all, files)).toEqual([]);
    const some = choose(all, [2], false);
    expect(answerHunks(some, files)).toEqual([1, 3]);
    expect(files.map((one) => standing(some, one))).toEqual(["some", "all"]);
    expect(answerHunks(choose(all, [1, 2, 3], false), files)).toBeNull();
    expect(all.size).toBe(3);
  });

  it("have the numbers of both texts, and stand side by side", () => {
    const lines = rows(files[0]!.hunks[0]!);
    expect(lines.map(({ old, now }) => [old, now])).toEqual([
      [3, 3],
      [4, null],
      [null, 4],
    ]);
    expect(pairs(lines).map(([left, right]) => [left?.text, right?.text])).toEqual([
      ["a", "a"],
      ["b", "c"],
    ]);
  });

  it("are read from a patch, and from the arguments of an edit", () => {
    const patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n";
    expect(parsePatch(patch).map(({ path, what, added, removed }) => [path, what, added, removed])).toEqual([
      ["x.py", "changed", 1, 1],
      ["new", "added", 1, 0],
    ]);
    expect(editOf({ path: "a.py", old: "x\n", new: "y" })[0]!.hunks[0]!.lines).toEqual(["-x", "+y"]);
    expect(editOf({ command: "ls" })).toEqual([]);
  });

  it("show a hostile file name and line as text", () => {
    const hostile = { ...file("<img src=x onerror=alert(1)>", 1) };
    hostile.hunks[0]!.lines = ["+</script><script>alert(1)</script>"];
    const drawn = renderToStaticMarkup(<DiffView files={[hostile]} mode="inline" />);
    expect(drawn).not.toMatch(/<(img|script)\b/);
    expect(drawn).toContain("&lt;img src=x onerror=alert(1)&gt;");
  });
});

describe("a plot", () => {
  it("ends its axis at a round number", () => {
    expect([0, 0.3, 1, 7, 20, 1234].map(niceTop)).toEqual([1, 0.5, 1, 10, 20, 2000]);
  });
});
