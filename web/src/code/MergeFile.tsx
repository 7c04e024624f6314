import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import type { ChangedFile } from "../types";
import { languageOf, readOnly, setup } from "./setup";

/** A whole file with its change, side by side where there is room, by @codemirror/merge. */
export default function MergeFile({ file }: { file: ChangedFile }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const node = box.current!;
    let view: { destroy: () => void } | null = null;
    let gone = false;
    void languageOf(file.path).then((language) => {
      if (gone) return;
      const extensions = [setup(file.path), readOnly, language];
      const before = file.before ?? "";
      const after = file.after ?? "";
      const collapse = { margin: 4, minSize: 8 };
      view =
        node.clientWidth > 640
          ? new MergeView({
              a: { doc: before, extensions },
              b: { doc: after, extensions },
              parent: node,
              collapseUnchanged: collapse,
            })
          : new EditorView({
              doc: after,
              extensions: [
                extensions,
                unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: collapse }),
              ],
              parent: node,
            });
    });
    return () => {
      gone = true;
      view?.destroy();
    };
  }, [file]);
  return <div ref={box} className="merge-file" />;
}
