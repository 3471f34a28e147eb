import type { StackCounts } from "./counts.ts";
import type { Grouping } from "./grouping.ts";
import type { Profile } from "./profile.ts";

/** A function below others. Its children are found when they are first looked at. */
export interface Node {
  /** −1: the root. */
  item: number;
  parent: Node | null;
  depth: number;
  own: number;
  total: number;
  /** The stacks that are merged here and, in a tree of callers, for how much each counts. */
  stacks: number[];
  weights: number[] | null;
  children: Node[] | null;
}

/** Stacks merged by function: callees, or callers. Only the part that is looked at is ever made. */
export class CallTree {
  readonly root: Node;
  private readonly slotOf: Int32Array;

  /** `start`: the stacks at which the tree starts, by their frames; null: all, from their outermost or innermost frames. */
  constructor(
    private readonly profile: Profile,
    private readonly counts: StackCounts,
    private readonly grouping: Grouping,
    readonly inverted: boolean,
    start: number[] | null,
  ) {
    this.slotOf = new Int32Array(grouping.count).fill(-1);
    const { parent } = profile.stack;
    const stacks: number[] = start ?? [];
    if (start === null) {
      const count = inverted ? counts.own : counts.total;
      for (let at = 0; at < profile.stackCount; at++) {
        if (count[at] > 0 && (inverted || parent[at] < 0)) stacks.push(at);
      }
    }
    const weight = (at: number) => (inverted && start === null ? counts.own[at] : counts.total[at]);
    const weights = inverted ? stacks.map(weight) : null;
    this.root = { item: -1, parent: null, depth: 0, own: 0, total: 0, stacks: [], weights: null, children: null };
    this.root.children = this.merge(this.root, stacks, weights);
    for (const child of this.root.children) this.root.total += child.total;
  }

  children(node: Node): Node[] {
    if (node.children) return node.children;
    const { parent, firstChild, nextSibling } = this.profile.stack;
    const stacks: number[] = [];
    let weights: number[] | null = null;
    if (node.weights) {
      // Stacks that go on alike from here are followed once.
      const places = new Map<number, number>();
      weights = [];
      for (let row = 0; row < node.stacks.length; row++) {
        const up = parent[node.stacks[row]];
        if (up < 0) continue;
        const place = places.get(up);
        if (place === undefined) {
          places.set(up, stacks.length);
          stacks.push(up);
          weights.push(node.weights[row]);
        } else weights[place] += node.weights[row];
      }
    } else {
      for (const stack of node.stacks) {
        for (let child = firstChild[stack]; child >= 0; child = nextSibling[child]) {
          if (this.counts.total[child] > 0) stacks.push(child);
        }
      }
    }
    node.children = this.merge(node, stacks, weights);
    return node.children;
  }

  private merge(parent: Node, stacks: number[], weights: number[] | null): Node[] {
    const nodes: Node[] = [];
    const { slotOf, grouping, counts } = this;
    const { frame } = this.profile.stack;
    for (let row = 0; row < stacks.length; row++) {
      const stack = stacks[row];
      const item = grouping.ofFrame[frame[stack]];
      let slot = slotOf[item];
      if (slot < 0) {
        slot = nodes.length;
        slotOf[item] = slot;
        const depth = parent.depth + 1;
        nodes.push({ item, parent, depth, own: 0, total: 0, stacks: [], weights: weights && [], children: null });
      }
      const node = nodes[slot];
      node.stacks.push(stack);
      if (weights) {
        node.weights!.push(weights[row]);
        node.total += weights[row];
        if (parent.item < 0) node.own += counts.own[stack];
      } else {
        node.total += counts.total[stack];
        node.own += counts.own[stack];
      }
    }
    for (const node of nodes) slotOf[node.item] = -1;
    return nodes.sort((a, b) => b.total - a.total || a.item - b.item);
  }
}
