import { useMemo, useState } from "react";
import { get } from "../api";
import { Rows, Trouble, useLoaded } from "../components";
import { go } from "../place";
import { rank } from "./rank";

/** A file by some letters of its path. */
export default function QuickOpen({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useLoaded(() => get<{ paths: string[]; truncated: boolean }>("/files/all"), "");
  const hits = useMemo(() => rank(text, all.value?.paths ?? []), [text, all.value]);
  const open = (path: string | undefined) => {
    if (!path) return;
    onClose();
    go("code", path);
  };
  return (
    <div className="quick">
      <input
        value={text}
        aria-label="letters of the path"
        placeholder="letters of the path"
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
          else if (event.key === "Enter") open(hits[at]);
          else return;
          event.preventDefault();
        }}
      />
      <Trouble error={all.error} />
      <Rows
        label="files"
        items={hits}
        height={28}
        selected={at}
        render={(path, index) => (
          <button type="button" className={index === at ? "hit selected" : "hit"} onClick={() => open(path)}>
            {path}
          </button>
        )}
      />
      {all.value?.truncated && <small className="dim">only the first {all.value.paths.length} files are listed</small>}
    </div>
  );
}
