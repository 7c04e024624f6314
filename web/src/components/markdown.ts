/** Markdown as a tree of plain values. Nothing of it is ever HTML: what is not understood is text. */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "strike"; children: Inline[] }
  | { kind: "link"; address: string; children: Inline[] }
  | { kind: "image"; address: string; text: string }
  | { kind: "break" };

export type MarkdownBlock =
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; blocks: MarkdownBlock[] }
  | { kind: "list"; ordered: boolean; start: number; items: { task: boolean | null; blocks: MarkdownBlock[] }[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const DEPTH = 8;
const REACH = 4000;

/** The address when it may be followed: the web or mail, nothing that runs. */
export function safeAddress(address: string): string | null {
  const plain = [...address.trim()].filter((letter) => letter > " " && letter !== "\u007f").join("");
  return /^(https?:\/\/|mailto:)/i.test(plain) ? plain : null;
}

/** The top-level blocks as source, so that only the last one changes while text streams in. */
export function splitBlocks(source: string): string[] {
  const blocks: string[] = [];
  let current: string[] = [];
  let fence = "";
  const flush = () => {
    if (current.some((line) => line.trim())) blocks.push(current.join("\n"));
    current = [];
  };
  for (const line of source.split("\n")) {
    const found = /^\s{0,3}(`{3,}|~{3,})/.exec(line);
    if (fence) {
      current.push(line);
      if (found && found[1]!.startsWith(fence) && line.trim() === found[1]) {
        fence = "";
        flush();
      }
    } else if (found && !/^\s/.test(line)) {
      flush();
      fence = found[1]!;
      current.push(line);
    } else if (!line.trim() && !/^( {2,}|\t|[-*+] |\d+[.)] )/.test(current[0] ?? "")) {
      flush();
    } else if (current.length && listy(current[0]!) && !current.at(-1)!.trim() && line.trim() && !continues(line)) {
      flush();
      current.push(line);
    } else current.push(line);
  }
  flush();
  return blocks;
}

const listy = (line: string) => /^([-*+] |\d+[.)] )/.test(line);
const continues = (line: string) => listy(line) || /^( {2,}|\t)/.test(line);

export function parseMarkdown(source: string, depth = 0): MarkdownBlock[] {
  if (depth > DEPTH) return [{ kind: "paragraph", children: [{ kind: "text", text: source }] }];
  const lines = source.split("\n");
  const blocks: MarkdownBlock[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at, depth);
    blocks.push(block);
    at = Math.max(next, at + 1);
  }
  return blocks;
}

function blockAt(lines: string[], at: number, depth: number): [MarkdownBlock, number] {
  const line = lines[at]!;
  const fence = /^\s{0,3}(`{3,}|~{3,})\s*([^\s`]*)/.exec(line);
  if (fence) return fenced(lines, at, fence[1]!, fence[2]!);
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1]!.length, children: inline(heading[2]!) }, at + 1];
  if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) return [{ kind: "rule" }, at + 1];
  if (/^\s{0,3}>/.test(line)) {
    const end = endOf(lines, at, (one) => /^\s{0,3}>/.test(one));
    const inner = lines.slice(at, end).map((one) => one.replace(/^\s{0,3}> ?/, ""));
    return [{ kind: "quote", blocks: parseMarkdown(inner.join("\n"), depth + 1) }, end];
  }
  if (/^\s{0,3}([-*+]|\d{1,9}[.)])\s/.test(line)) return list(lines, at, depth);
  if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1] ?? "") && lines[at + 1]!.includes("|"))
    return table(lines, at);
  const end = endOf(
    lines,
    at,
    (one, offset) => !!one.trim() && (offset === 0 || !/^(#{1,6}\s|\s{0,3}(```|~~~|>))/.test(one)),
  );
  const stop = lines.slice(at + 1, end).findIndex((one) => /^\s{0,3}([-*+]|\d{1,9}[.)])\s/.test(one));
  const last = stop < 0 ? end : at + 1 + stop;
  return [{ kind: "paragraph", children: inline(lines.slice(at, last).join("\n")) }, last];
}

function endOf(lines: string[], at: number, holds: (line: string, offset: number) => boolean): number {
  let end = at;
  while (end < lines.length && holds(lines[end]!, end - at)) end += 1;
  return end;
}

function fenced(lines: string[], at: number, fence: string, language: string): [MarkdownBlock, number] {
  const end = endOf(lines, at + 1, (one) => !(one.trim().startsWith(fence) && !one.trim().slice(fence.length).trim()));
  return [{ kind: "code", language, text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function list(lines: string[], at: number, depth: number): [MarkdownBlock, number] {
  const marker = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;
  const first = marker.exec(lines[at]!)!;
  const indent = first[1]!.length;
  const ordered = /\d/.test(first[2]!);
  const items: { task: boolean | null; blocks: MarkdownBlock[] }[] = [];
  while (at < lines.length) {
    const found = marker.exec(lines[at]!);
    if (!found || found[1]!.length > indent + 1 || /\d/.test(found[2]!) !== ordered) break;
    const width = found[0].length;
    const end = endOf(lines, at + 1, (one, offset) => {
      if (!one.trim()) return continues(lines[at + 2 + offset] ?? "") && !listy(lines[at + 2 + offset] ?? "");
      return /^\s*/.exec(one)![0].length > indent + 1 || !(marker.test(one) || blockStart(one));
    });
    const body = [lines[at]!.slice(width), ...lines.slice(at + 1, end).map((one) => unindent(one, width))];
    const task = /^\[([ xX])\]\s+/.exec(body[0]!);
    if (task) body[0] = body[0]!.slice(task[0].length);
    items.push({ task: task ? task[1] !== " " : null, blocks: parseMarkdown(body.join("\n"), depth + 1) });
    at = end;
    while (at < lines.length && !lines[at]!.trim() && marker.test(lines[at + 1] ?? "")) at += 1;
  }
  return [{ kind: "list", ordered, start: ordered ? Number.parseInt(first[2]!, 10) : 1, items }, at];
}

const blockStart = (line: string) => /^(#{1,6}\s|```|~~~|>)/.test(line);

function unindent(line: string, width: number): string {
  const space = /^\s*/.exec(line)![0].length;
  return line.slice(Math.min(space, width));
}

function table(lines: string[], at: number): [MarkdownBlock, number] {
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
  const end = endOf(lines, at + 2, (one) => one.includes("|") && !!one.trim());
  return [{ kind: "table", head: cells(lines[at]!), rows: lines.slice(at + 2, end).map(cells) }, end];
}

const PAIRS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "strike"],
  ["*", "em"],
  ["_", "em"],
] as const;

/** Text with its marks. Every search has a bounded reach, so that hostile text costs no more than long text. */
export function inline(source: string, depth = 0): Inline[] {
  if (depth > DEPTH) return [{ kind: "text", text: source }];
  const parts: Inline[] = [];
  let plain = "";
  const add = (part: Inline) => {
    if (plain) parts.push({ kind: "text", text: plain });
    plain = "";
    parts.push(part);
  };
  let at = 0;
  while (at < source.length) {
    const found = markAt(source, at, depth);
    if (found) {
      add(found[0]);
      at = found[1];
    } else if (source[at] === "\\" && /[\\`*_{}[\]()#+\-.!|~<>]/.test(source[at + 1] ?? "")) {
      plain += source[at + 1];
      at += 2;
    } else {
      plain += source[at];
      at += 1;
    }
  }
  if (plain) parts.push({ kind: "text", text: plain });
  return parts;
}

function markAt(source: string, at: number, depth: number): [Inline, number] | null {
  const letter = source[at]!;
  if (letter === "`") return codeAt(source, at);
  if (letter === "!" && source[at + 1] === "[") {
    const found = bracketsAt(source, at + 1);
    return found && [{ kind: "image", text: found.text, address: found.address }, found.end];
  }
  if (letter === "[") {
    const found = bracketsAt(source, at);
    return found && [{ kind: "link", address: found.address, children: inline(found.text, depth + 1) }, found.end];
  }
  if (letter === "h" || letter === "<") {
    const found = /^<?(https?:\/\/[^\s<>"'`]{1,2000}[^\s<>"'`.,;:!?)\]*_])>?/.exec(source.slice(at, at + 2010));
    if (found && !/\w/.test(source[at - 1] ?? ""))
      return [
        { kind: "link", address: found[1]!, children: [{ kind: "text", text: found[1]! }] },
        at + found[0].length,
      ];
    return null;
  }
  if (letter === "\n") return / {2}$/.test(source.slice(at - 2, at)) ? [{ kind: "break" }, at + 1] : null;
  for (const [mark, kind] of PAIRS) {
    if (!source.startsWith(mark, at) || /\s/.test(source[at + mark.length] ?? " ")) continue;
    if (mark[0] === "_" && /\w/.test(source[at - 1] ?? "")) continue;
    const end = source.slice(0, at + REACH).indexOf(mark, at + mark.length + 1);
    if (end < 0 || /\s/.test(source[end - 1]!) || (mark === "*" && source[end + 1] === "*")) continue;
    if (mark[0] === "_" && /\w/.test(source[end + mark.length] ?? "")) continue;
    return [{ kind, children: inline(source.slice(at + mark.length, end), depth + 1) }, end + mark.length];
  }
  return null;
}

function codeAt(source: string, at: number): [Inline, number] | null {
  const ticks = /^`+/.exec(source.slice(at, at + 50))![0];
  const end = source.slice(0, at + REACH).indexOf(ticks, at + ticks.length);
  if (end < 0) return null;
  const text = source.slice(at + ticks.length, end).replaceAll("\n", " ");
  return [{ kind: "code", text: /^ .*[^ ].* $/.test(text) ? text.slice(1, -1) : text }, end + ticks.length];
}

function bracketsAt(source: string, at: number): { text: string; address: string; end: number } | null {
  const window = source.slice(at, at + REACH);
  let open = 0;
  let close = -1;
  for (let place = 0; place < window.length; place += 1) {
    if (window[place] === "[") open += 1;
    if (window[place] === "]" && --open === 0) {
      close = place;
      break;
    }
  }
  if (close < 0) return null;
  const target =
    /^\(\s*<?([^\s()<>]{0,1000}(?:\([^\s()]{0,200}\)[^\s()<>]{0,1000})?)>?(?:\s+["'][^"'\n]{0,300}["'])?\s*\)/.exec(
      window.slice(close + 1),
    );
  if (!target) return null;
  return { text: window.slice(1, close), address: target[1]!, end: at + close + 1 + target[0].length };
}
