import type { Comparison } from "./comparison.ts";
import type { Side } from "./state.ts";

/** A function below others. Its children are found when they are first looked at. */
export interface Node {
  /** The function; −1: the root. */
  item: number;
  parent: Node | null;
  depth: number;
  /** The samples of the recording that widths show. */
  total: number;
  /** The row of the comparison's tree; −1: the root. */
  row: number;
  children: Node[] | null;
}

/** The call tree of both recordings, with the numbers of samples of one of them. */
export class Tree {
  readonly root: Node;

  constructor(
    private readonly comparison: Comparison,
    private readonly side: Side,
  ) {
    const total = comparison.about.samples[side === "before" ? 0 : 1];
    this.root = { item: -1, parent: null, depth: 0, total, row: -1, children: null };
  }

  /** Those with the most samples first. */
  children(node: Node): Node[] {
    if (node.children) return node.children;
    const { function: functions, parent, firstChild, nextSibling, total } = this.comparison.node;
    const rows: number[] = [];
    if (node.row < 0) parent.forEach((up, row) => up < 0 && rows.push(row));
    else for (let row = firstChild[node.row]; row >= 0; row = nextSibling[row]) rows.push(row);
    const samples = total[this.side];
    const depth = node.depth + 1;
    const children = rows.map((row): Node => ({ item: functions[row], parent: node, depth, total: samples[row], row, children: null }));
    node.children = children.sort((a, b) => b.total - a.total || a.item - b.item);
    return node.children;
  }
}
