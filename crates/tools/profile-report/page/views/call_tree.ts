import { el } from "../dom.ts";
import { count } from "../format.ts";
import { nodeName, type Node } from "../model/tree.ts";
import type { Changed, Session } from "../session.ts";
import { shareCell, swatch } from "./cells.ts";
import { Rows } from "./rows.ts";

/** The call tree, or the tree of callers, as a table that opens. */
export class CallTreeTable {
  private readonly rows = new Rows(24, "Call tree");
  private open = new Set<Node>();
  private shown: Node[] = [];
  private selected: Node | null = null;
  private tree: unknown = null;

  constructor(
    private readonly session: Session,
    element: HTMLElement,
  ) {
    const head = ["Total", "", "Self", "", "Function"].map((label) => el("span", {}, label));
    element.append(el("div", { class: "head tree-grid" }, ...head), this.rows.element);
  }

  changed(_changed: Changed) {
    const { tree } = this.session;
    if (this.tree !== tree) {
      this.tree = tree;
      this.open = new Set();
      this.selected = null;
      // The path that most samples take.
      let node: Node | undefined = tree.root;
      for (let depth = 0; node && depth < 40; depth++) {
        this.open.add(node);
        const children: Node[] = tree.children(node);
        node = children.length > 0 && children[0].total > 0.5 * node.total ? children[0] : undefined;
      }
    }
    this.draw();
  }

  private draw() {
    const { tree, counts, grouping, search } = this.session;
    this.shown = [];
    const pending = [...tree.children(tree.root)].reverse();
    for (let node = pending.pop(); node; node = pending.pop()) {
      this.shown.push(node);
      if (this.open.has(node)) pending.push(...[...tree.children(node)].reverse());
    }
    this.rows.set(this.shown.length, (row) => {
      const node = this.shown[row];
      const id = grouping.functionOf[node.item];
      const mark = tree.children(node).length === 0 ? "" : this.open.has(node) ? "▾" : "▸";
      const found = !search.isEmpty && search.has(id);
      // Deep rows stay in view.
      const indent = Math.min(node.depth - 1, 60) * 12;
      return el(
        "div",
        { class: `tree-grid ${node === this.selected ? "selected" : ""} ${found ? "found" : ""}`, "data-function": id, click: () => this.select(node, row) },
        shareCell(node.total, counts.all, "total"),
        el("span", { class: "number" }, count(node.total)),
        shareCell(node.own, counts.all, "own"),
        el("span", { class: "number" }, node.own > 0 ? count(node.own) : ""),
        el(
          "span",
          { class: "name", style: `padding-left:${indent}px` },
          el("button", { class: "toggle", "aria-label": "open or close", click: (event: MouseEvent) => (event.stopPropagation(), this.toggle(node)) }, mark),
          swatch(this.session, grouping.categoryOf[node.item]),
          nodeName(node, grouping),
        ),
      );
    });
  }

  private select(node: Node, row: number) {
    this.selected = node;
    this.session.update({ fn: this.session.grouping.functionOf[node.item], code: -1 });
    this.draw();
    this.rows.reveal(row);
  }

  private toggle(node: Node) {
    if (!this.open.delete(node)) this.open.add(node);
    this.draw();
  }

  move(key: "up" | "down" | "left" | "right") {
    const at = this.selected ? this.shown.indexOf(this.selected) : -1;
    const node = this.shown[at];
    if (key === "right" && node && !this.open.has(node)) return this.toggle(node);
    if (key === "left" && node) {
      if (this.open.has(node)) return this.toggle(node);
      const above = node.parent ? this.shown.indexOf(node.parent) : -1;
      if (above >= 0) this.select(this.shown[above], above);
      return;
    }
    const next = Math.min(this.shown.length - 1, Math.max(0, at + (key === "up" ? -1 : 1)));
    if (this.shown[next]) this.select(this.shown[next], next);
  }
}
