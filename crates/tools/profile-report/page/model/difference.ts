/** A line of two texts: in both, or in one of them. */
export interface DifferentLine {
  /** The number of the line in each text; −1: it is not there. */
  left: number;
  right: number;
}

/** More changes than these are not looked for: the rest is shown as replaced. */
const MOST_CHANGES = 2000;

/** The shortest change from one list of lines to another, by Myers' algorithm. */
export function difference(left: readonly string[], right: readonly string[]): DifferentLine[] {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let [leftEnd, rightEnd] = [left.length, right.length];
  while (leftEnd > start && rightEnd > start && left[leftEnd - 1] === right[rightEnd - 1]) {
    leftEnd--;
    rightEnd--;
  }
  const lines: DifferentLine[] = [];
  for (let at = 0; at < start; at++) lines.push({ left: at, right: at });
  lines.push(...middle(left.slice(start, leftEnd), right.slice(start, rightEnd), start));
  for (let at = 0; leftEnd + at < left.length; at++) lines.push({ left: leftEnd + at, right: rightEnd + at });
  return lines;
}

function middle(left: readonly string[], right: readonly string[], start: number): DifferentLine[] {
  const [n, m] = [left.length, right.length];
  const most = Math.min(n + m, MOST_CHANGES);
  let furthest = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  let found = -1;
  search: for (let changes = 0; changes <= most; changes++) {
    trace.push(furthest.slice());
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const at = diagonal + most + 1;
      const down = diagonal === -changes || (diagonal !== changes && furthest[at - 1] < furthest[at + 1]);
      let x = down ? furthest[at + 1] : furthest[at - 1] + 1;
      while (x < n && x - diagonal < m && x - diagonal >= 0 && left[x] === right[x - diagonal]) x++;
      furthest[at] = x;
      if (x >= n && x - diagonal >= m) {
        found = changes;
        break search;
      }
    }
  }
  const lines: DifferentLine[] = [];
  if (found < 0) {
    for (let at = 0; at < n; at++) lines.push({ left: start + at, right: -1 });
    for (let at = 0; at < m; at++) lines.push({ left: -1, right: start + at });
    return lines;
  }
  let [x, y] = [n, m];
  for (let changes = found; changes >= 0; changes--) {
    furthest = trace[changes] as Int32Array<ArrayBuffer>;
    const diagonal = x - y;
    const at = diagonal + most + 1;
    const down = diagonal === -changes || (diagonal !== changes && furthest[at - 1] < furthest[at + 1]);
    const beforeX = changes === 0 ? 0 : down ? furthest[at + 1] : furthest[at - 1];
    const beforeY = changes === 0 ? 0 : beforeX - (down ? diagonal + 1 : diagonal - 1);
    while (x > beforeX && y > beforeY) lines.push({ left: start + --x, right: start + --y });
    if (changes === 0) break;
    if (down) lines.push({ left: -1, right: start + --y });
    else lines.push({ left: start + --x, right: -1 });
  }
  return lines.reverse();
}
