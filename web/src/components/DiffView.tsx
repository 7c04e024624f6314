import { lazy, memo, Suspense, useState } from "react";
import { DRAWN, line, visible } from "../format";
import type { ChangedFile, Hunk } from "../types";
import { Badge, Check, Select, Spinner } from "./basics";
import { pairs, type Row, rows, standing } from "./diff";

const WholeFile = lazy(() => import("../code/MergeFile"));

export type DiffMode = "inline" | "side by side" | "whole file";

/** Turns hunks on or off, by their numbers. */
export type Choose = (hunks: number[], on: boolean) => void;

/** How diffs are shown; kept for the next one. */
export function useDiffMode(): [DiffMode, (mode: DiffMode) => void] {
  const [mode, setMode] = useState(() => (localStorage.getItem("pawl-diff") as DiffMode | null) ?? "inline");
  return [
    mode,
    (next) => {
      localStorage.setItem("pawl-diff", next);
      setMode(next);
    },
  ];
}

const MODES: DiffMode[] = ["inline", "side by side", "whole file"];

/** The switch between the three ways to show a diff. */
export function DiffSwitch({ mode, onChange }: { mode: DiffMode; onChange: (mode: DiffMode) => void }) {
  return <Select label="how the diff is shown" bare value={mode} options={MODES} onChange={onChange} />;
}

/** Files with their hunks; with `chosen`, check boxes choose files and hunks. */
export function DiffView({
  files,
  mode,
  chosen,
  onChoose,
}: {
  files: readonly ChangedFile[];
  mode: DiffMode;
  chosen?: ReadonlySet<number>;
  onChoose?: Choose;
}) {
  return (
    <div className="diff">
      {files.map((file) => (
        <DiffFile key={file.path} file={file} mode={mode} chosen={chosen} onChoose={onChoose} />
      ))}
    </div>
  );
}

function DiffFile({
  file,
  mode,
  chosen,
  onChoose,
}: {
  file: ChangedFile;
  mode: DiffMode;
  chosen?: ReadonlySet<number> | undefined;
  onChoose?: Choose | undefined;
}) {
  const taken = chosen ? standing(chosen, file) : "all";
  const numbers = file.hunks.map((hunk) => hunk.number);
  const box = chosen && onChoose && (
    <Check
      label={<span className="hidden">all of {file.path}</span>}
      checked={taken === "all"}
      mixed={taken === "some"}
      onChange={(on) => onChoose(numbers, on)}
    />
  );
  return (
    <div className={box ? "diff-file choosing" : "diff-file"}>
      {box}
      <details open={file.hunks.length < 40}>
        <summary>
          <span className="path">{visible(file.path)}</span>
          <span className="counts">
            <span className="added">+{file.added}</span> <span className="removed">−{file.removed}</span>
          </span>
          {file.what !== "changed" && file.what !== "modified" && <Badge>{file.what}</Badge>}
          {file.binary && <Badge>binary</Badge>}
        </summary>
        {mode === "whole file" && !file.binary ? (
          <Suspense fallback={<Spinner />}>
            <WholeFile file={file} />
          </Suspense>
        ) : (
          file.hunks.map((hunk) => (
            <DiffHunk
              key={hunk.number}
              hunk={hunk}
              sideBySide={mode === "side by side"}
              on={chosen?.has(hunk.number)}
              onChoose={onChoose}
            />
          ))
        )}
      </details>
    </div>
  );
}

const DiffHunk = memo(
  ({
    hunk,
    sideBySide,
    on,
    onChoose,
  }: {
    hunk: Hunk;
    sideBySide: boolean;
    on?: boolean | undefined;
    onChoose?: Choose | undefined;
  }) => {
    const lines = rows(hunk);
    return (
      <div className={on === false ? "hunk off" : "hunk"}>
        <div className="hunk-head">
          {onChoose ? (
            <Check
              label={`hunk ${hunk.number} ${hunk.header}`}
              checked={on ?? false}
              onChange={(value) => onChoose([hunk.number], value)}
            />
          ) : (
            hunk.header
          )}
        </div>
        {/* biome-ignore lint/a11y/useSemanticElements: long lines scroll, and the keyboard must reach them */}
        <div className="hunk-lines" role="region" aria-label={`hunk ${hunk.number}`} tabIndex={0}>
          {sideBySide
            ? pairs(lines).map(([left, right], key) => (
                <div key={key} className="pair">
                  <Line row={left} number={left?.old ?? null} />
                  <Line row={right} number={right?.now ?? null} />
                </div>
              ))
            : lines.map((row, key) => (
                <div key={key} className={`line ${CLASS[row.sign]}`}>
                  <span className="number">{row.old}</span>
                  <span className="number">{row.now}</span>
                  <span className="sign">{row.sign}</span>
                  <Text row={row} />
                </div>
              ))}
        </div>
      </div>
    );
  },
);

function Text({ row: { text, mark } }: { row: Row }) {
  if (!mark || mark[0] === mark[1] || text.length > DRAWN) return <span className="text">{line(text)}</span>;
  return (
    <span className="text">
      {visible(text.slice(0, mark[0]))}
      <mark>{visible(text.slice(...mark))}</mark>
      {visible(text.slice(mark[1]))}
    </span>
  );
}

const CLASS = { " ": "", "+": "plus", "-": "minus", "\\": "remark" };

function Line({ row, number }: { row: Row | null; number: number | null }) {
  return (
    <div className={`line half ${row ? CLASS[row.sign] : "none"}`}>
      <span className="number">{number}</span>
      <span className="sign">{row?.sign}</span>
      {row && <Text row={row} />}
    </div>
  );
}
