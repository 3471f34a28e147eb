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
  /** The most frames of the function that stand here one behind the other: more than 1 only of one without a name. */
  repeated: number;
  /** The stacks that are merged here and, in a tree of callers, for how much each counts. */
  stacks: number[];
  weights: number[] | null;
  children: Node[] | null;
}

/** The name of a node's function; of a run, with its length: `[unknown] ×127`. */
export function nodeName(node: Node, grouping: Grouping): string {
  const name = grouping.distinctName(node.item);
  return node.repeated > 1 ? `${name} ×${node.repeated}` : name;
}

/** Stacks merged by function: callees, or callers. A run of frames without a name is one node. Only the part that is looked at is ever made. */
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
    this.root = { item: -1, parent: null, depth: 0, own: 0, total: 0, repeated: 1, stacks: [], weights: null, children: null };
    this.root.children = this.merge(this.root, stacks, weights);
    for (const child of this.root.children) this.root.total += child.total;
  }

  children(node: Node): Node[] {
    if (node.children) return node.children;
    const { parent, run, firstChild, nextSibling } = this.profile.stack;
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
          // What continues a run is in the node already.
          if (run[child] === 1 && this.counts.total[child] > 0) stacks.push(child);
        }
      }
    }
    node.children = this.merge(node, stacks, weights);
    return node.children;
  }

  private merge(parent: Node, stacks: number[], weights: number[] | null): Node[] {
    const nodes: Node[] = [];
    const { slotOf, grouping, counts } = this;
    const { frame, parent: caller, run } = this.profile.stack;
    for (let row = 0; row < stacks.length; row++) {
      let stack = stacks[row];
      const item = grouping.ofFrame[frame[stack]];
      let slot = slotOf[item];
      if (slot < 0) {
        slot = nodes.length;
        slotOf[item] = slot;
        const depth = parent.depth + 1;
        nodes.push({ item, parent, depth, own: 0, total: 0, repeated: 1, stacks: [], weights: weights && [], children: null });
      }
      const node = nodes[slot];
      if (weights) {
        node.weights!.push(weights[row]);
        node.total += weights[row];
        if (parent.item < 0) node.own += counts.own[stack];
        node.repeated = Math.max(node.repeated, run[stack]);
        // On with the caller of the run.
        while (run[stack] > 1) stack = caller[stack];
        node.stacks.push(stack);
      } else {
        node.total += counts.total[stack];
        this.addRun(node, stack);
      }
    }
    for (const node of nodes) slotOf[node.item] = -1;
    return nodes.sort((a, b) => b.total - a.total || a.item - b.item);
  }

  /** Adds a stack to a node of a tree of callees, and the stacks that continue its run. */
  private addRun(node: Node, first: number) {
    const { run, firstChild, nextSibling } = this.profile.stack;
    const pending = [first];
    for (let stack = pending.pop(); stack !== undefined; stack = pending.pop()) {
      node.stacks.push(stack);
      node.own += this.counts.own[stack];
      node.repeated = Math.max(node.repeated, run[stack]);
      for (let child = firstChild[stack]; child >= 0; child = nextSibling[child]) {
        if (run[child] > 1 && this.counts.total[child] > 0) pending.push(child);
      }
    }
  }
}
