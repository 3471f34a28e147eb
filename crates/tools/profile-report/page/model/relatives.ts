/** Parents, first children and next siblings of the rows of a tree, each of which has the number of rows up to its parent (0: none). −1: none. */
export function relatives(up: Uint32Array) {
  const parent = new Int32Array(up.length);
  const firstChild = new Int32Array(up.length).fill(-1);
  const nextSibling = new Int32Array(up.length).fill(-1);
  for (let row = 0; row < up.length; row++) parent[row] = up[row] === 0 ? -1 : row - up[row];
  for (let row = up.length - 1; row >= 0; row--) {
    if (parent[row] < 0) continue;
    nextSibling[row] = firstChild[parent[row]];
    firstChild[parent[row]] = row;
  }
  return { parent, firstChild, nextSibling };
}
