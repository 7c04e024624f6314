import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { command, get, query } from "../api";
import {
  Button,
  Check,
  Empty,
  Field,
  Rows,
  Spinner,
  Tabs,
  Tree,
  type TreeNode,
  Trouble,
  toast,
  useLoaded,
  useWidth,
} from "../components";
import { useStore } from "../events/store";
import { visible } from "../format";
import { go, onSearch, useRoute } from "../place";
import type { OutlineRow, TreeEntry } from "../types";
import { Editor } from "./Editor";
import { tabOf } from "./open";

const SIDES = [
  { id: "files", label: "Files" },
  { id: "outline", label: "Outline" },
  { id: "search", label: "Search" },
  { id: "locate", label: "Meaning" },
] as const;
type Side = (typeof SIDES)[number]["id"];

/** The file that was looked at last; it is there again when the pane is. */
let latest = "";

/** The workspace's files: tree, outline, search, and the editor. */
export default function CodePane() {
  const route = useRoute();
  const { path, line } = route.path || !tabOf(latest) ? route : { path: latest, line: 0 };
  const box = useRef<HTMLDivElement>(null);
  const both = useWidth(box) > 540;
  const [side, setSide] = useState<Side>("files");
  const [shown, setShown] = useState(!path);
  const [searched, setSearched] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another place was gone to
  useEffect(() => {
    latest = path;
    if (path) setShown(false);
  }, [path, line]);
  useEffect(() => {
    const search = () => {
      setSide("search");
      setShown(true);
      setSearched((count) => count + 1);
    };
    return onSearch(search);
  }, []);
  useEffect(() => {
    if (searched) box.current?.querySelector<HTMLInputElement>("#side input")?.focus();
  }, [searched]);
  return (
    <>
      {!both && (
        <div className="bar">
          <Button onClick={() => setShown(!shown)}>{shown ? "Editor" : "Files, outline, search"}</Button>
        </div>
      )}
      <div ref={box} className={both ? "code" : "code narrow"}>
        <div className="side" hidden={!both && !shown}>
          <Tabs label="find" panel="side" tabs={SIDES} value={side} onChange={setSide} />
          <div id="side" role="tabpanel" aria-label={side} className="side-panel">
            {side === "files" && <Files selected={path} />}
            {side === "outline" && <Outline path={path} />}
            {side === "search" && <Search />}
            {side === "locate" && <Locate />}
          </div>
        </div>
        <div className="editor-box" hidden={!both && shown}>
          <Editor path={path} line={line} />
        </div>
      </div>
    </>
  );
}

const folder = (path: string) => get<{ entries: TreeEntry[] }>(query("/files", { path }));

/** The folders that are open, also after another pane was looked at. */
let opened: ReadonlySet<string> = new Set();

function Files({ selected }: { selected: string }) {
  const [folders, setFolders] = useState<ReadonlyMap<string, TreeEntry[]>>(new Map());
  const [open, setOpen] = useState(opened);
  const [error, setError] = useState<unknown>(null);
  const changed = useStore((store) => store.filesChanged);
  const marked = useChangedPaths(changed);
  const load = useCallback(
    (path: string) =>
      folder(path).then(
        ({ entries }) => {
          setFolders((old) => new Map(old).set(path, entries));
          setError(null);
        },
        (problem) => (path ? toast(problem) : setError(problem)),
      ),
    [],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: folders that are open are read again when files changed
  useEffect(() => {
    for (const path of ["", ...open]) void load(path);
  }, [changed]);
  const toggle = (path: string) => {
    const next = new Set(open);
    if (next.delete(path)) return setOpen(next);
    setOpen(next.add(path));
    void load(path);
  };
  useEffect(() => {
    opened = open;
  }, [open]);
  const nodes = (path: string): TreeNode[] | null =>
    folders.get(path)?.map((entry) => {
      const touched =
        marked.has(entry.path) ||
        (entry.kind === "directory" && [...marked].some((one) => one.startsWith(`${entry.path}/`)));
      const names = [entry.ignored && "ignored", touched && "changed"].filter(Boolean).join(" ");
      const said = [entry.name, entry.ignored && "ignored", touched && "changed", entry.secret && "secret"]
        .filter(Boolean)
        .join(", ");
      return {
        id: entry.path,
        name: said,
        label: (
          <span className={names} title={said}>
            {visible(entry.name)}
            {entry.secret && <span className="dim"> (secret)</span>}
            {entry.kind === "link" && " ↗"}
          </span>
        ),
        ...(entry.kind === "directory" ? { children: nodes(entry.path) } : {}),
      };
    }) ?? null;
  const root = nodes("");
  if (error) return <Trouble error={error} />;
  if (!root) return <Spinner label="the files are listed" />;
  if (!root.length) return <Empty>&ensp;The workspace is empty.</Empty>;
  return (
    <Tree
      label="files"
      nodes={root}
      open={open}
      selected={selected}
      onToggle={toggle}
      onSelect={(path) => go("code", path)}
    />
  );
}

/** Paths that stand otherwise than in the last commit, or that entries have changed where there is none. */
function useChangedPaths(key: number): ReadonlySet<string> {
  const changed = useLoaded(() => get<{ paths: string[] }>("/files/changed"), key);
  return useMemo(() => new Set(changed.value?.paths), [changed.value]);
}

function Outline({ path }: { path: string }) {
  const changed = useStore((store) => store.filesChanged);
  const outline = useLoaded(
    () => (path ? get<OutlineRow[]>(query("/outline", { path })) : Promise.resolve([])),
    `${path} ${changed}`,
  );
  return (
    <div className="side-body">
      <Trouble error={outline.error} />
      {outline.loading && path && !outline.value && <Spinner label="the outline is read" />}
      {outline.value?.length === 0 && (
        <Empty>{path ? "No definitions are known in this file." : "Open a file first."}</Empty>
      )}
      <Rows
        label="outline"
        height={24}
        items={outline.value ?? []}
        render={(row) => (
          <button
            type="button"
            className="hit"
            style={{ paddingLeft: `${0.3 + row.depth * 0.8}rem` }}
            title={`${row.kind} ${row.name}, line ${row.line}`}
            onClick={() => go("code", path, row.line)}
          >
            <span className="dim">{row.kind}</span> {row.name}
          </button>
        )}
      />
    </div>
  );
}

interface Hit {
  path: string;
  line: number;
  text: string;
}

function Hits({ hits }: { hits: Hit[] }) {
  return (
    <Rows
      label="hits"
      height={44}
      items={hits}
      render={(hit) => (
        <button
          type="button"
          className="hit two"
          title={`${hit.path}:${hit.line}`}
          onClick={() => go("code", hit.path, hit.line)}
        >
          <span className="path">
            <bdi dir="ltr">
              {hit.path}
              <span className="dim">:{hit.line}</span>
            </bdi>
          </span>
          <span className="dim">{hit.text.trim()}</span>
        </button>
      )}
    />
  );
}

function Search() {
  const [text, setText] = useState("");
  const [regex, setRegex] = useState(false);
  const [asked, setAsked] = useState("");
  const found = useLoaded(
    () =>
      asked
        ? get<{ hits: Hit[]; truncated: boolean }>(query("/search", { q: asked, regex: regex ? 1 : 0 }))
        : Promise.resolve(null),
    `${regex} ${asked}`,
  );
  return (
    <form
      className="side-body"
      onSubmit={(event) => {
        event.preventDefault();
        setAsked(text);
      }}
    >
      <Field label="text in files (Enter)" value={text} onChange={setText} />
      <Check label="regular expression" checked={regex} onChange={setRegex} />
      {found.loading && asked && <Spinner label="it is looked for" />}
      <Trouble error={found.error} />
      {found.value && (
        <small className="dim" role="status">
          {found.value.hits.length} hits{found.value.truncated && ", and more"}
        </small>
      )}
      <Hits hits={found.value?.hits ?? []} />
    </form>
  );
}

interface Located {
  files: { path: string; reasons: string[]; symbols: { name: string; line: number }[] }[];
}

function Locate() {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const found = useLoaded(() => (asked ? command<Located>("locate", asked) : Promise.resolve(null)), asked);
  const hits = (found.value?.files ?? []).map(located);
  return (
    <form
      className="side-body"
      onSubmit={(event) => {
        event.preventDefault();
        setAsked(text);
      }}
    >
      <Field label="what the code is about (Enter)" value={text} onChange={setText} />
      {found.loading && asked && <Spinner label="it is looked for" />}
      <Trouble error={found.error} />
      {found.value && hits.length === 0 && <Empty>Nothing was found.</Empty>}
      <Hits hits={hits} />
    </form>
  );
}

function located({ path, reasons, symbols }: Located["files"][number]): Hit {
  const names = symbols.map((symbol) => symbol.name).join(", ");
  return { path, line: symbols[0]?.line ?? 1, text: [names, ...reasons].filter(Boolean).join(" · ") };
}
