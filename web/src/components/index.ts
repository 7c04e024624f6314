/** The component library; `#/components` shows each of them. */
export * from "./basics";
export * from "./DiffView";
export * from "./Icon";
export * from "./Markdown";
export * from "./Plot";
export * from "./Rows";
export * from "./Tree";
