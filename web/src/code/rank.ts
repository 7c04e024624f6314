/** Paths that hold the letters in their order; those that hold them together, in the name, come first. */
export function rank(text: string, paths: readonly string[]): string[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return paths.slice(0, 2000);
  const scored: [number, string][] = [];
  for (const path of paths) {
    const lower = path.toLowerCase();
    const name = lower.slice(lower.lastIndexOf("/") + 1);
    if (name.startsWith(wanted)) scored.push([0, path]);
    else if (name.includes(wanted)) scored.push([1, path]);
    else if (lower.includes(wanted)) scored.push([2, path]);
    else if (inOrder(wanted, lower)) scored.push([3, path]);
  }
  return scored
    .sort((one, other) => one[0] - other[0] || one[1].length - other[1].length || (one[1] < other[1] ? -1 : 1))
    .slice(0, 2000)
    .map(([, path]) => path);
}

function inOrder(letters: string, text: string): boolean {
  let at = 0;
  for (const letter of letters) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
