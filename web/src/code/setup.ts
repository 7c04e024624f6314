/** CodeMirror as Pawl uses it: colours from the page, languages when they are needed. */

import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { lintGutter } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { nonce } from "../api";

const LANGUAGES = [
  LanguageDescription.of({
    name: "JavaScript",
    extensions: ["js", "jsx", "mjs", "cjs"],
    load: async () => (await import("@codemirror/lang-javascript")).javascript({ jsx: true }),
  }),
  LanguageDescription.of({
    name: "TypeScript",
    extensions: ["ts", "tsx", "mts"],
    load: async () => (await import("@codemirror/lang-javascript")).javascript({ jsx: true, typescript: true }),
  }),
  LanguageDescription.of({
    name: "Python",
    extensions: ["py", "pyi"],
    load: async () => (await import("@codemirror/lang-python")).python(),
  }),
  LanguageDescription.of({
    name: "CSS",
    extensions: ["css"],
    load: async () => (await import("@codemirror/lang-css")).css(),
  }),
  LanguageDescription.of({
    name: "HTML",
    extensions: ["html", "htm"],
    load: async () => (await import("@codemirror/lang-html")).html(),
  }),
  LanguageDescription.of({
    name: "JSON",
    extensions: ["json"],
    load: async () => (await import("@codemirror/lang-json")).json(),
  }),
  LanguageDescription.of({
    name: "Markdown",
    extensions: ["md", "markdown"],
    load: async () => (await import("@codemirror/lang-markdown")).markdown(),
  }),
];

/** The language of a file, or nothing where none fits. */
export async function languageOf(path: string): Promise<Extension> {
  const found = LanguageDescription.matchFilename(LANGUAGES, path);
  return found ? await found.load() : [];
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--dim)", fontStyle: "italic" },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.typeName), tags.className],
    color: "var(--code-name)",
  },
  { tag: [tags.tagName, tags.heading], color: "var(--code-name)", fontWeight: "600" },
  { tag: [tags.propertyName, tags.attributeName], color: "var(--code-property)" },
  { tag: tags.link, textDecoration: "underline" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", height: "100%" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--sunken)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--accent) 28%, transparent)",
  },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line)", color: "var(--text)" },
  ".cm-textfield": { backgroundColor: "var(--raised)", border: "1px solid var(--line)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--raised)", border: "1px solid var(--line)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "1px solid var(--line)", color: "var(--dim)" },
  ".cm-deletedChunk, &.cm-merge-a .cm-changedLine": { backgroundColor: "var(--minus)" },
  "&.cm-merge-b .cm-changedLine, .cm-changedLine": { backgroundColor: "var(--plus)" },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--dim)" },
});

export const setup = (label: string): Extension => [
  EditorView.cspNonce.of(nonce()),
  EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  basicSetup,
  lintGutter(),
  syntaxHighlighting(colours),
  look,
];

export const readOnly: Extension = [EditorState.readOnly.of(true), EditorView.editable.of(false)];
