/** The states of a file that is open: what it began from, what stands on disk, what the user typed. Nothing is lost. */

import type { FileText, Saved } from "../types";

export interface OpenFile {
  path: string;
  /** The text that the edit began from, and its digest. */
  base: string;
  digest: string;
  /** Why it cannot be shown as text; empty when it can. */
  why: string;
  /** It was changed on disk while it has edits of the user's: a save merges both. */
  changed: boolean;
  /** What stands on disk, when both meet at the same place. */
  conflict: { text: string; digest: string } | null;
}

export interface Step {
  file: OpenFile;
  /** The text that the editor shows from now on. */
  doc: string;
}

export function opened(file: FileText): Step {
  const base = file.text ?? "";
  const why = file.text === null ? file.why || "it cannot be shown" : "";
  return { file: { path: file.path, base, digest: file.digest, why, changed: false, conflict: null }, doc: base };
}

/** A save went well. What was typed while it was under way stays, and is merged with the next one. */
export function afterSave(file: OpenFile, sent: string, doc: string, saved: Saved): Step {
  if (doc === sent)
    return {
      file: { ...file, base: saved.text, digest: saved.digest, changed: false, conflict: null },
      doc: saved.text,
    };
  if (saved.merged) return { file: { ...file, changed: true }, doc };
  return { file: { ...file, base: saved.text, digest: saved.digest, changed: false, conflict: null }, doc };
}

/** Nothing was written, because both changed the same place. */
export function afterConflict(file: OpenFile, disk: FileText): OpenFile {
  return { ...file, conflict: { text: disk.text ?? "", digest: disk.digest } };
}

/** The user has looked at both: the edit goes on from what stands on disk. */
export function resolved(file: OpenFile): OpenFile {
  if (!file.conflict) return file;
  return { ...file, base: file.conflict.text, digest: file.conflict.digest, conflict: null, changed: false };
}

/** The file was read again; what the user typed is never replaced. */
export function afterRead(file: OpenFile, doc: string, disk: FileText): Step {
  if (disk.digest === file.digest) return { file: file.changed ? { ...file, changed: false } : file, doc };
  if (doc === file.base) return opened(disk);
  return { file: { ...file, changed: true }, doc };
}
