import { color } from "../dom.ts";
import { count, percent } from "../format.ts";
import { nodeName, type CallTree, type Node } from "../model/tree.ts";
import type { Changed, Session } from "../session.ts";
import { FlameGraph, type FlameContent } from "./flame_graph.ts";

/** The flame graph: callers above callees or, inverted, callees above callers. */
export class Flame extends FlameGraph<Node> {
  constructor(session: Session, scroller: HTMLElement, canvas: HTMLCanvasElement, space: HTMLElement) {
    super(new Content(session), scroller, canvas, space);
  }

  changed(changed: Changed) {
    if (changed.has("apart") || changed.has("inverted") || changed.has("focus")) this.forget();
    this.layout();
  }
}

class Content implements FlameContent<Node> {
  constructor(private readonly session: Session) {}

  get tree(): CallTree {
    return this.session.tree;
  }

  name(node: Node): string {
    const { grouping, profile, state } = this.session;
    if (node.item >= 0) return nodeName(node, grouping);
    const what = state.inverted ? "callers of " : "";
    return state.focus >= 0 ? what + profile.distinctName(state.focus) : state.inverted ? "all, by innermost function" : "all";
  }

  fills(): (node: Node) => string {
    const { categories, grouping } = this.session;
    const colors = categories.list.map((category) => color(category.color));
    return (node) => colors[grouping.categoryOf[node.item]];
  }

  found(): ((node: Node) => boolean) | null {
    const { search, grouping } = this.session;
    return search.isEmpty ? null : (node) => search.has(grouping.functionOf[node.item]);
  }

  isMarked(): boolean {
    return false;
  }

  describe(node: Node): string[] {
    const { grouping, categories, counts, profile } = this.session;
    const samples = `${count(node.total)} samples (${percent(node.total, counts.all)}), ${count(node.own)} in the function itself`;
    if (node.item < 0) return [samples];
    return [profile.functionPlace(grouping.functionOf[node.item]), categories.list[grouping.categoryOf[node.item]].label, samples];
  }

  select(node: Node) {
    this.session.update({ fn: node.item >= 0 ? this.session.grouping.functionOf[node.item] : -1, code: -1 });
  }

  open() {
    if (this.session.state.fn >= 0) this.session.update({ view: "code", code: -1 });
  }
}
