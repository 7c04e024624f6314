import { type ReactNode, useState } from "react";
import { Icon } from "./Icon";

export interface TreeNode {
  id: string;
  label: ReactNode;
  name: string;
  className?: string;
  /** Undefined for a leaf, null while the children are not known. */
  children?: TreeNode[] | null;
}

interface Flat {
  node: TreeNode;
  level: number;
  parent: string | null;
}

/** A tree of which folders are opened when asked for; arrows, Home, End and Enter as ARIA says. */
export function Tree({
  label,
  nodes,
  open,
  selected,
  onToggle,
  onSelect,
}: {
  label: string;
  nodes: readonly TreeNode[];
  open: ReadonlySet<string>;
  selected: string;
  onToggle: (id: string) => void;
  onSelect: (id: string) => void;
}) {
  const flat: Flat[] = [];
  const walk = (list: readonly TreeNode[], level: number, parent: string | null) => {
    for (const node of list) {
      flat.push({ node, level, parent });
      if (node.children && open.has(node.id)) walk(node.children, level + 1, node.id);
    }
  };
  walk(nodes, 1, null);
  const [focused, setFocused] = useState("");
  const at = Math.max(
    0,
    flat.findIndex(({ node }) => node.id === (focused || selected)),
  );
  const focus = (index: number, list: Element) => {
    const row = flat[Math.min(flat.length - 1, Math.max(0, index))];
    if (!row) return;
    setFocused(row.node.id);
    list.querySelectorAll<HTMLElement>('[role="treeitem"]')[flat.indexOf(row)]?.focus();
  };
  const key = (event: React.KeyboardEvent<HTMLDivElement>) => {
    const row = flat[at];
    if (!row) return;
    const list = event.currentTarget;
    const folder = row.node.children !== undefined;
    const isOpen = open.has(row.node.id);
    if (event.key === "ArrowDown") focus(at + 1, list);
    else if (event.key === "ArrowUp") focus(at - 1, list);
    else if (event.key === "Home") focus(0, list);
    else if (event.key === "End") focus(flat.length - 1, list);
    else if (event.key === "ArrowRight" && folder) isOpen ? focus(at + 1, list) : onToggle(row.node.id);
    else if (event.key === "ArrowLeft" && folder && isOpen) onToggle(row.node.id);
    else if (event.key === "ArrowLeft")
      focus(
        flat.findIndex(({ node }) => node.id === row.parent),
        list,
      );
    else if (event.key === "Enter" || event.key === " ") folder ? onToggle(row.node.id) : onSelect(row.node.id);
    else return;
    event.preventDefault();
  };
  return (
    <div className="tree" role="tree" aria-label={label} onKeyDown={key}>
      {flat.map(({ node, level }, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys for all of its items
        <div
          key={node.id}
          role="treeitem"
          aria-level={level}
          aria-label={node.name}
          aria-selected={node.id === selected}
          aria-expanded={node.children === undefined ? undefined : open.has(node.id)}
          tabIndex={index === at ? 0 : -1}
          className={node.className}
          style={{ paddingLeft: `${level * 0.9 - 0.4}rem` }}
          onClick={() => {
            setFocused(node.id);
            node.children === undefined ? onSelect(node.id) : onToggle(node.id);
          }}
        >
          <span aria-hidden className="twist">
            {node.children !== undefined && <Icon name="open" />}
          </span>
          {node.label}
        </div>
      ))}
    </div>
  );
}
