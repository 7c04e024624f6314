import { setDiagnostics } from "@codemirror/lint";
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useCallback, useEffect, useRef, useState } from "react";
import { get, put, query, Refused } from "../api";
import { attempt, Badge, Button, Dialog, Empty, Icon, Trouble, toast } from "../components";
import { examine, touched, useStore } from "../events/store";
import { OWN } from "../OwnPage";
import { go } from "../place";
import type { Definition, Diagnostic, FileText, Saved } from "../types";
import { afterConflict, afterRead, afterSave, type OpenFile, opened, resolved, type Step } from "./files";
import { closeTab, keep, putTab, tabOf, useTabs } from "./open";
import { languageOf, readOnly, setup } from "./setup";

const read = (path: string) => get<FileText>(query("/file", { path }));

/** Opens a file, unless it is open. */
async function open(path: string, extensions: Extension): Promise<void> {
  if (tabOf(path)) return;
  const [file, language] = await Promise.all([read(path), languageOf(path)]);
  if (tabOf(path)) return;
  const step = opened(file);
  const locked = step.file.why ? readOnly : [];
  const state = EditorState.create({
    doc: step.doc,
    extensions: [setup(path), language, locked, extensions],
  });
  putTab({ file: step.file, state, base: state.doc, dirty: false });
}

/** The least change from what the editor shows to another text, so that the cursor stays where it was. */
function difference(old: string, now: string): { from: number; to: number; insert: string } {
  let from = 0;
  const most = Math.min(old.length, now.length);
  while (from < most && old[from] === now[from]) from += 1;
  let end = 0;
  while (end < most - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return { from, to: old.length - end, insert: now.slice(from, now.length - end) };
}

/** The editor over the files that are open; what the user types is theirs, and a save merges. */
export function Editor({ path, line }: { path: string; line: number }) {
  const tabs = useTabs();
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const shown = useRef("");
  const [drawn, setDrawn] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [found, setFound] = useState<Definition[]>([]);
  const tab = tabs.get(path);

  const show = useCallback((target: string) => {
    const kept = tabOf(target);
    if (!kept || !view.current) return;
    if (shown.current !== target) view.current.setState(kept.state);
    shown.current = target;
    setDrawn(target);
  }, []);

  /** Takes a step of `files.ts` into the editor and the tab. */
  const take = useCallback((target: string, { file, doc }: Step) => {
    const kept = tabOf(target);
    if (!kept) return;
    const current = kept.state.doc.toString();
    const state = current === doc ? kept.state : kept.state.update({ changes: difference(current, doc) }).state;
    const base = state.toText(file.base);
    putTab({ file, state, base, dirty: !state.doc.eq(base) });
    if (shown.current === target && view.current && current !== doc) {
      shown.current = "";
      const scroll = view.current.scrollSnapshot();
      view.current.setState(state);
      view.current.dispatch({ effects: scroll });
      shown.current = target;
    }
  }, []);

  const save = useCallback(
    (target: string) =>
      attempt(async () => {
        const kept = tabOf(target);
        if (!kept?.dirty) return;
        const text = kept.state.doc.toString();
        const { base, digest } = kept.file;
        try {
          const send = (more: object) => put<Saved>("/file", { path: target, text, base, digest, ...more });
          const saved = await send({}).catch((problem) => {
            // Files without which this page does not come up.
            const asks = problem instanceof Refused && problem.code === "protected_refused";
            if (asks && confirm(`${problem.message}\n\n${problem.advice}`)) return send({ protected: true });
            throw problem;
          });
          const now = tabOf(target);
          if (!now) return;
          touched();
          if (!OWN) void examine();
          take(target, afterSave(now.file, text, now.state.doc.toString(), saved));
          toast(
            saved.merged
              ? `saved; merged with what changed on disk (entry ${saved.entry})`
              : `saved (entry ${saved.entry})`,
          );
        } catch (problem) {
          if (!(problem instanceof Refused && problem.status === 409)) throw problem;
          const disk = await read(target);
          const now = tabOf(target);
          if (now) putTab({ ...now, file: afterConflict(now.file, disk) });
        }
      }),
    [take],
  );

  const define = useCallback(async (target: string, position: number) => {
    const state = tabOf(target)!.state;
    const word = state.wordAt(position);
    if (!word) return;
    const name = state.sliceDoc(word.from, word.to);
    const places = await get<Definition[]>(query("/definition", { name, path: target }));
    if (places.length === 0) toast(`no definition of ${name} was found`);
    else if (places.length === 1) go("code", places[0]!.path, places[0]!.line);
    else setFound(places);
  }, []);

  useEffect(() => {
    // The first view brings the styles along, so that it has to know the nonce.
    const current = new EditorView({ parent: box.current!, extensions: setup("") });
    view.current = current;
    return () => {
      current.destroy();
      view.current = null;
      shown.current = "";
    };
  }, []);

  useEffect(() => {
    setError(null);
    if (!path) return;
    let gone = false;
    const extensions = [
      EditorView.updateListener.of((update) => {
        if (update.docChanged || update.selectionSet) keep(path, update.state);
      }),
      Prec.highest(
        keymap.of([
          { key: "Mod-s", preventDefault: true, run: () => !!save(path) },
          {
            key: "F12",
            preventDefault: true,
            run: (at) => !!attempt(() => define(path, at.state.selection.main.head)),
          },
        ]),
      ),
      EditorView.domEventHandlers({
        click: (event, at) => {
          if (!event.ctrlKey && !event.metaKey) return false;
          const position = at.posAtCoords({ x: event.clientX, y: event.clientY });
          if (position !== null) void attempt(() => define(path, position));
          return true;
        },
      }),
    ];
    open(path, extensions).then(
      () => {
        if (gone) return;
        show(path);
        const current = view.current;
        if (!current || !line) return;
        const target = current.state.doc.line(Math.min(line, current.state.doc.lines));
        current.dispatch({
          selection: { anchor: target.from },
          effects: EditorView.scrollIntoView(target.from, { y: "center" }),
        });
        current.focus();
      },
      (problem) => !gone && setError(problem),
    );
    return () => {
      gone = true;
    };
  }, [path, line, save, define, show]);

  useDiskChanges(take);
  useDiagnostics(view, path, drawn === path);

  const conflict = tab?.file.conflict ?? null;
  const hidden = !tab || tab.file.why !== "" || conflict !== null;
  return (
    <div className="editor">
      <FileTabs current={path} />
      <Trouble error={error} />
      {tab && (
        <div className="editor-bar">
          <span className="mono ellipsis">{path}</span>
          {tab.file.changed && <Badge tone="warn">changed on disk; saving merges</Badge>}
          {conflict && <Badge tone="bad">both changed the same place; nothing was written</Badge>}
          <span className="spring" />
          {tab.dirty && !conflict && (
            <Button tone="primary" onClick={() => save(path)} title="Ctrl+S">
              Save
            </Button>
          )}
        </div>
      )}
      {tab?.file.why && <Empty icon="file">{tab.file.why}</Empty>}
      {!path && <Empty icon="file">Open a file from the tree, or by its name with Ctrl+P.</Empty>}
      {conflict && tab && (
        <Conflict
          file={tab.file}
          doc={tab.state.doc.toString()}
          onDone={(doc) => {
            take(path, { file: resolved(tab.file), doc });
            void save(path);
          }}
          onLater={() => putTab({ ...tab, file: { ...tab.file, conflict: null, changed: true } })}
        />
      )}
      <div className="editor-text" ref={box} hidden={hidden} />
      <Dialog title="Definitions" open={found.length > 0} onClose={() => setFound([])}>
        <ul className="plain-list">
          {found.map((one) => (
            <li key={`${one.path}:${one.line}`}>
              <button
                type="button"
                className="row-button"
                onClick={() => {
                  setFound([]);
                  go("code", one.path, one.line);
                }}
              >
                <span className="mono ellipsis">
                  {one.path}:{one.line}
                </span>
                <span className="dim">{one.kind}</span>
              </button>
            </li>
          ))}
        </ul>
      </Dialog>
    </div>
  );
}

function FileTabs({ current }: { current: string }) {
  const tabs = useTabs();
  if (tabs.size === 0) return null;
  const close = (path: string, dirty: boolean) => {
    if (dirty && !confirm(`${path} has changes that are not saved. Close it all the same?`)) return;
    closeTab(path);
    if (path === current) {
      const next = [...tabs.keys()].filter((one) => one !== path).at(-1);
      location.hash = next ? `#/code/${next}` : "#/code";
    }
  };
  return (
    <nav className="file-tabs" aria-label="open files">
      {[...tabs.values()].map(({ file: { path }, dirty }) => (
        <span key={path} className={path === current ? "file-tab current" : "file-tab"}>
          <button type="button" title={path} aria-current={path === current} onClick={() => go("code", path)}>
            {path.split("/").at(-1)}
            {dirty && " •"}
          </button>
          <button type="button" aria-label={`close ${path}`} onClick={() => close(path, dirty)}>
            <Icon name="close" />
          </button>
        </span>
      ))}
    </nav>
  );
}

/** Both texts beside each other; the right one is the user's and goes on from there. */
function Conflict({
  file,
  doc,
  onDone,
  onLater,
}: {
  file: OpenFile;
  doc: string;
  onDone: (doc: string) => void;
  onLater: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const merge = useRef<MergeView | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the texts are those of the moment in which the conflict arose
  useEffect(() => {
    const view = new MergeView({
      a: { doc: file.conflict!.text, extensions: [setup("on disk"), readOnly] },
      b: { doc, extensions: [setup("yours")] },
      revertControls: "a-to-b",
      parent: box.current!,
    });
    merge.current = view;
    return () => view.destroy();
  }, [file.conflict]);
  return (
    <>
      <div className="bar editor-bar">
        <span className="dim">left: on disk · right: yours; the arrows take over what is on disk</span>
        <span className="spring" />
        <Button tone="primary" onClick={() => onDone(merge.current!.b.state.doc.toString())}>
          Save the right one
        </Button>
        <Button onClick={onLater}>Later</Button>
      </div>
      <div className="editor-text" ref={box} />
    </>
  );
}

/** Reads open files again when a run or a command may have changed them. */
function useDiskChanges(take: (path: string, step: Step) => void): void {
  const changed = useStore((store) => store.filesChanged + store.stateAsked);
  const tabs = useTabs();
  const paths = [...tabs.keys()].join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `changed` says when to read again
  useEffect(() => {
    if (!changed) return;
    for (const path of paths ? paths.split("\n") : [])
      read(path).then(
        (disk) => {
          const tab = tabOf(path);
          if (tab && disk.digest !== tab.file.digest) take(path, afterRead(tab.file, tab.state.doc.toString(), disk));
        },
        () => {},
      );
  }, [changed]);
}

/** The findings of the latest checks, in the gutter and under the text. */
function useDiagnostics(view: React.RefObject<EditorView | null>, path: string, ready: boolean): void {
  const latest = useStore((store) => [...store.runs.values()].findLast((run) => run.checks.length)?.checks);
  const verified = useStore((store) => store.edited ?? store.verified?.steps);
  const checks = verified ?? latest;
  useEffect(() => {
    const current = view.current;
    if (!current || !ready) return;
    const findings = (checks ?? [])
      .flatMap((check) => check.findings)
      .filter((one) => one.path === path && one.line > 0);
    const { doc } = current.state;
    const marks = findings
      .filter((one) => one.line <= doc.lines)
      .map((one: Diagnostic) => {
        const line = doc.line(one.line);
        const severity = one.severity === "note" ? ("info" as const) : one.severity;
        return { from: line.from, to: line.to, severity, message: `${one.tool}: ${one.message}` };
      });
    current.dispatch(setDiagnostics(current.state, marks));
  }, [checks, path, ready, view]);
}
