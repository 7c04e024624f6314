import { type ReactNode, useEffect, useRef, useState } from "react";

/** A long list of rows of one height, of which only those in sight are drawn. */
export function Rows<T>({
  items,
  height,
  render,
  label,
  selected = -1,
}: {
  items: readonly T[];
  height: number;
  render: (item: T, index: number) => ReactNode;
  label: string;
  selected?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(400);
  useEffect(() => {
    const node = box.current!;
    const observer = new ResizeObserver(() => setRoom(node.clientHeight));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const node = box.current!;
    if (selected < 0) return;
    if (selected * height < node.scrollTop) node.scrollTop = selected * height;
    else if ((selected + 1) * height > node.scrollTop + node.clientHeight)
      node.scrollTop = (selected + 1) * height - node.clientHeight;
  }, [selected, height]);
  const first = Math.max(0, Math.floor(top / height) - 10);
  const last = Math.min(items.length, Math.ceil((top + room) / height) + 10);
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows are drawn as they come into sight
    <div
      ref={box}
      className="rows"
      role="group"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div style={{ height: items.length * height, position: "relative" }}>
        <div style={{ position: "absolute", top: first * height, left: 0, right: 0 }}>
          {items.slice(first, last).map((item, index) => (
            <div key={first + index} style={{ height }}>
              {render(item, first + index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
