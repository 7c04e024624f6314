export interface Line { name: string; price: number; quantity: number }
export function total(lines: Line[]): number {
  let sum = 0;
  for (const line of lines) sum += line.price * line.quantity;
  return sum;
}
export function cheapest(lines: Line[]): Line | undefined {
  let best: Line | undefined;
  for (const line of lines) if (best === undefined || line.price < best.price) best = line;
  return best;
}
