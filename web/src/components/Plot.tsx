import { useRef } from "react";
import { useWidth } from "./basics";

export interface Series {
  name: string;
  values: readonly (number | null)[];
}

const HEIGHT = 180;
const LEFT = 64;
const BOTTOM = 22;

/** Bars (stacked) or a line over the same labels, as SVG; its numbers are in its title for those who cannot see it. */
export function Plot({
  title,
  labels,
  series,
  format,
  line = false,
  onPick,
}: {
  title: string;
  labels: readonly string[];
  series: readonly Series[];
  format: (value: number) => string;
  line?: boolean;
  onPick?: (index: number) => void;
}) {
  const sums = labels.map((_, at) =>
    series.reduce((sum, one) => (line ? Math.max(sum, one.values[at] ?? 0) : sum + (one.values[at] ?? 0)), 0),
  );
  const top = niceTop(Math.max(...sums, 0));
  const box = useRef<HTMLElement>(null);
  const width = useWidth(box);
  const step = (width - LEFT - 8) / Math.max(1, labels.length);
  const y = (value: number) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 10);
  const x = (at: number) => LEFT + at * step + step / 2;
  const told = labels.map((label, at) => `${label}: ${series.map((one) => said(one, at, format)).join(", ")}`);
  return (
    <figure className="plot" ref={box}>
      <figcaption>
        <strong>{title}</strong>
        {series.length > 1 &&
          series.map((one, number) => (
            <span key={one.name} className={`key s${number}`}>
              {one.name}
            </span>
          ))}
      </figcaption>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={`${title}. ${told.slice(-20).join("; ")}`}>
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line className="grid" x1={LEFT} x2={width - 8} y1={y(top * part)} y2={y(top * part)} />
            <text className="axis" x={LEFT - 6} y={y(top * part) + 4} textAnchor="end">
              {format(top * part)}
            </text>
          </g>
        ))}
        {line
          ? series.map((one, number) => <Line key={one.name} one={one} number={number} x={x} y={y} told={told} />)
          : labels.map((_, at) => {
              let under = 0;
              return (
                // biome-ignore lint/a11y/noStaticElementInteractions: the table below the plot offers the same by keyboard
                <g key={at} className={onPick && "pick"} onClick={() => onPick?.(at)}>
                  <title>{told[at]}</title>
                  {series.map((one, number) => {
                    const value = one.values[at] ?? 0;
                    const bar = { y: y(under + value), height: Math.max(value ? 1 : 0, y(under) - y(under + value)) };
                    under += value;
                    return (
                      <rect
                        key={one.name}
                        className={`s${number}`}
                        x={x(at) - barWidth(step) / 2}
                        width={barWidth(step)}
                        {...bar}
                      />
                    );
                  })}
                </g>
              );
            })}
        {labels.map((label, at) =>
          at % Math.ceil((labels.length * 50) / (width - LEFT)) === 0 ? (
            <text key={at} className="axis" x={x(at)} y={HEIGHT - 6} textAnchor="middle">
              {label}
            </text>
          ) : null,
        )}
      </svg>
    </figure>
  );
}

function Line({
  one,
  number,
  x,
  y,
  told,
}: {
  one: Series;
  number: number;
  x: (at: number) => number;
  y: (value: number) => number;
  told: string[];
}) {
  const points = one.values.flatMap((value, at) => (value === null ? [] : [{ at, value }]));
  return (
    <g className={`s${number}`}>
      <polyline points={points.map(({ at, value }) => `${x(at)},${y(value)}`).join(" ")} />
      {points.map(({ at, value }) => (
        <circle key={at} cx={x(at)} cy={y(value)} r="3.5">
          <title>{told[at]}</title>
        </circle>
      ))}
    </g>
  );
}

const barWidth = (step: number) => Math.max(2, Math.min(34, step * 0.7));

const said = (one: Series, at: number, format: (value: number) => string) => {
  const value = one.values[at];
  return `${one.name} ${value === null || value === undefined ? "unknown" : format(value)}`;
};

/** The end of an axis: 1, 2 or 5 times a power of ten, at least as large as the value. */
export function niceTop(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= value * 0.9999)!;
}
