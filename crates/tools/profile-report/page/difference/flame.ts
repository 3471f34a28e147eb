import { color } from "../dom.ts";
import { FlameGraph, type FlameContent } from "../views/flame_graph.ts";
import { at } from "./comparison.ts";
import { describe } from "./describe.ts";
import type { Changed, Session } from "./session.ts";
import type { Node, Tree } from "./tree.ts";

/** The flame graph of both recordings: boxes as wide as in one of them, in the colours of the difference. */
export class Flame extends FlameGraph<Node> {
  constructor(session: Session, scroller: HTMLElement, canvas: HTMLCanvasElement, space: HTMLElement) {
    super(new Content(session), scroller, canvas, space);
  }

  changed(changed: Changed) {
    if (changed.has("width")) this.layout();
    else this.draw();
  }
}

class Content implements FlameContent<Node> {
  constructor(private readonly session: Session) {}

  get tree(): Tree {
    return this.session.tree;
  }

  name(node: Node): string {
    return node.item < 0 ? "all" : this.session.comparison.distinctName(node.item);
  }

  fills(): (node: Node) => string {
    const { comparison } = this.session;
    const colors = new Map<string, string>();
    return ({ row }) => {
      const name = comparison.color(at(comparison.node.total, row));
      let known = colors.get(name);
      if (known === undefined) colors.set(name, (known = color(name)));
      return known;
    };
  }

  found(): ((node: Node) => boolean) | null {
    const { matches } = this.session;
    return matches && ((node) => matches[node.item] === 1);
  }

  isMarked(node: Node): boolean {
    return node.item >= 0 && node.item === this.session.state.fn;
  }

  describe({ item, row }: Node): string[] {
    const { comparison } = this.session;
    if (item < 0) return [];
    const own = at(comparison.node.own, row);
    const lines = describe(comparison, at(comparison.node.total, row));
    return [comparison.place(item), comparison.kind(item), ...lines, `in the function itself: ${own.before} before, ${own.after} after`];
  }

  select(node: Node) {
    this.session.update({ fn: node.item });
  }

  open() {}
}
