import { memo, type ReactNode } from "react";
import { visible } from "../format";
import { type Inline, type MarkdownBlock, parseMarkdown, safeAddress, splitBlocks } from "./markdown";

/** Markdown of a model or a file: text only, nothing is loaded, links show where they lead. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      {splitBlocks(text).map((source, number) => (
        <Source key={number} source={source} />
      ))}
    </div>
  );
}

const Source = memo(({ source }: { source: string }) => <>{parseMarkdown(source).map(block)}</>);

function block(one: MarkdownBlock, key: number): ReactNode {
  switch (one.kind) {
    case "heading": {
      const Heading = `h${Math.min(6, one.level + 2)}` as "h3";
      return <Heading key={key}>{spans(one.children)}</Heading>;
    }
    case "paragraph":
      return <p key={key}>{spans(one.children)}</p>;
    case "code":
      return (
        <pre key={key} tabIndex={0} data-language={one.language}>
          <code>{visible(one.text)}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={key}>{one.blocks.map(block)}</blockquote>;
    case "list": {
      const items = one.items.map((item, number) => (
        <li key={number} className={item.task === null ? undefined : "task"}>
          {item.task !== null && <input type="checkbox" checked={item.task} disabled aria-label="done" />}
          {item.blocks.length === 1 && item.blocks[0]!.kind === "paragraph"
            ? spans(item.blocks[0]!.children)
            : item.blocks.map(block)}
        </li>
      ));
      return one.ordered ? (
        <ol key={key} start={one.start}>
          {items}
        </ol>
      ) : (
        <ul key={key}>{items}</ul>
      );
    }
    case "table":
      return (
        <div key={key} className="table-scroll">
          <table>
            <thead>
              <tr>
                {one.head.map((cell, number) => (
                  <th key={number}>{spans(cell)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {one.rows.map((row, number) => (
                <tr key={number}>
                  {row.map((cell, column) => (
                    <td key={column}>{spans(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={key} />;
  }
}

const PLACE = /^[\w@./-]{1,200}\.[A-Za-z]\w{0,9}(:\d{1,7})?$/;

function spans(parts: Inline[]): ReactNode {
  return parts.map((part, key) => {
    switch (part.kind) {
      case "text":
        return visible(part.text);
      case "code":
        return PLACE.test(part.text) ? (
          <a key={key} className="place" href={`#/code/${encodeURI(part.text)}`}>
            <code>{part.text}</code>
          </a>
        ) : (
          <code key={key}>{visible(part.text)}</code>
        );
      case "strong":
        return <strong key={key}>{spans(part.children)}</strong>;
      case "em":
        return <em key={key}>{spans(part.children)}</em>;
      case "strike":
        return <s key={key}>{spans(part.children)}</s>;
      case "link":
        return <Link key={key} address={part.address} label={part.children} />;
      case "image":
        return (
          <span key={key} className="image">
            [image{part.text && ` “${part.text}”`}, not loaded: <code>{part.address}</code>]
          </span>
        );
      default:
        return <br key={key} />;
    }
  });
}

function Link({ address, label }: { address: string; label: Inline[] }) {
  const safe = safeAddress(address);
  const plain = label.length === 1 && label[0]!.kind === "text" && label[0]!.text === address;
  if (!safe)
    return (
      <>
        {spans(label)} <code className="address">{address}</code>
      </>
    );
  return (
    <a href={safe} target="_blank" rel="noreferrer noopener" title={safe}>
      {spans(label)}
      {!plain && <span className="address"> ({safe})</span>}
    </a>
  );
}

/** Words of the model, marked as such: whatever they look like, they are no word of Pawl's. */
export const ModelSays = ({ text }: { text: string }) => (
  <div className="model-says">
    <span className="who">model</span>
    <Markdown text={text} />
  </div>
);
