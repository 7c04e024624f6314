/** Line drawings on a grid of 16, in the colour of the text beside them; words always stand there too. */
const PATHS = {
  work: "M2.5 3h11v8H8l-3 2.5V11H2.5z",
  code: "M5.5 4 2 8l3.5 4M10.5 4 14 8l-3.5 4",
  proof: "M8 1.8l5 1.8v4c0 3.2-2.1 5.4-5 6.6-2.9-1.2-5-3.4-5-6.6v-4zM5.8 7.9l1.6 1.6 2.9-3.2",
  time: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M8 4.8V8l2.2 1.6",
  money: "M2.5 13.5h11M4.5 11V8M8 11V3M11.5 11V6",
  preview: "M2 3h12v8H2zM5.5 13.5h5",
  settings:
    "M2.5 4.5h4M10.5 4.5h3M2.5 11.5h3M9.5 11.5h4M8.5 2.7a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6M7.5 9.7a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3",
  file: "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3l3.4 3.4",
  edit: "M3 13l.7-2.8 7.4-7.4 2.1 2.1-7.4 7.4z",
  tool: "M8 1.8 13.4 5v6L8 14.2 2.6 11V5zM2.6 5 8 8.2 13.4 5M8 8.2v6",
  plus: "M8 3v10M3 8h10",
  undo: "M5.5 3l-3 3 3 3M2.5 6h7a3.5 3.5 0 0 1 0 7H6",
  redo: "M10.5 3l3 3-3 3M13.5 6h-7a3.5 3.5 0 0 0 0 7H10",
  close: "M4 4l8 8M12 4l-8 8",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4 4h8v8H4z",
  open: "M6 4l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden>
      <path d={PATHS[name]} />
    </svg>
  );
}

export const iconNames = Object.keys(PATHS) as IconName[];
