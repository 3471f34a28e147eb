import { color, fit } from "../dom.ts";
import { count, percent } from "../format.ts";
import { pathTo, type Node } from "../model/tree.ts";
import type { Changed, Session } from "../session.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";

export interface Box {
  node: Node;
  x: number;
  y: number;
  width: number;
}

const ROW = 20;
/** Narrower boxes are not drawn, nor what is in them. */
const NARROWEST = 0.4;
const CHARACTER = 6.65;
const FONT = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

/** The flame graph: callers above callees or, inverted, callees above callers. */
export class Flame {
  boxes: Box[] = [];
  /** The functions from the root to the node that has the whole width. */
  private zoom: number[] = [];
  private selected: number[] = [];
  private hovered: Node | null = null;

  constructor(
    private readonly session: Session,
    private readonly scroller: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly space: HTMLElement,
  ) {
    scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => this.choose(this.boxAt(event)?.node));
    canvas.addEventListener("dblclick", () => session.state.fn >= 0 && session.update({ view: "code", code: -1 }));
    new ResizeObserver(() => this.layout()).observe(scroller);
  }

  changed(changed: Changed) {
    if (changed.has("apart") || changed.has("inverted") || changed.has("focus")) {
      this.zoom = [];
      this.selected = [];
      this.scroller.scrollTop = 0;
    }
    this.layout();
  }

  /** Zooms out; false if the whole tree is in view. */
  reset(): boolean {
    if (this.zoom.length === 0) return false;
    this.zoom = [];
    this.layout();
    return true;
  }

  /** Selects a node, and gives it the whole width. */
  private choose(node: Node | undefined) {
    if (!node) return;
    this.zoom = this.selected = pathTo(node);
    if (node.item >= 0) this.session.update({ fn: this.session.grouping.functionOf[node.item], code: -1 });
    this.layout();
  }

  /** Moves the selection to a neighbour. */
  move(key: "up" | "down" | "left" | "right") {
    const { tree, grouping } = this.session;
    const node = tree.follow(this.selected);
    let next: Node | undefined;
    if (key === "up") next = node.parent ?? undefined;
    else if (key === "down") next = tree.children(node)[0];
    else if (node.parent) {
      const siblings = tree.children(node.parent);
      next = siblings[siblings.indexOf(node) + (key === "left" ? -1 : 1)];
    }
    if (!next) return;
    this.selected = pathTo(next);
    // What is selected has to be in view.
    if (!this.boxes.some((box) => box.node === next)) this.zoom = this.selected;
    this.session.update({ fn: next.item >= 0 ? grouping.functionOf[next.item] : -1, code: -1 });
    this.layout();
    const y = next.depth * ROW;
    if (y < this.scroller.scrollTop) this.scroller.scrollTop = y;
    if (y + 2 * ROW > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = y - ROW;
  }

  zoomToSelected() {
    this.zoom = this.selected;
    this.layout();
  }

  layout() {
    const width = this.scroller.clientWidth;
    if (width === 0) return;
    const { tree } = this.session;
    const boxes: Box[] = [];
    const top = tree.follow(this.zoom);
    for (let above = top.parent; above; above = above.parent) boxes.push({ node: above, x: 0, y: above.depth * ROW, width });
    const scale = top.total > 0 ? width / top.total : 0;
    const pending: Box[] = [{ node: top, x: 0, y: top.depth * ROW, width }];
    for (let box = pending.pop(); box; box = pending.pop()) {
      boxes.push(box);
      let x = box.x;
      for (const node of tree.children(box.node)) {
        const wide = node.total * scale;
        // The widest come first.
        if (wide < NARROWEST) break;
        pending.push({ node, x, y: node.depth * ROW, width: wide });
        x += wide;
      }
    }
    this.boxes = boxes;
    const deepest = boxes.reduce((y, box) => Math.max(y, box.y), 0);
    this.space.style.height = `${deepest + ROW}px`;
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height, scrollTop } = this.scroller;
    if (width === 0) return;
    const { session } = this;
    const { grouping, categories, search, tree } = session;
    const context = fit(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    const colors = categories.list.map((category) => color(category.color));
    const [text, dim, root, match, mark] = ["--box-text", "--dim", "--root", "--match", "--accent"].map(color);
    const selected = this.selected.length > 0 ? tree.follow(this.selected) : null;
    for (const { node, x, y, width: wide } of this.boxes) {
      const top = y - scrollTop;
      if (top + ROW < 0 || top > height) continue;
      const id = grouping.functionOf[node.item];
      const found = node.item >= 0 && !search.isEmpty && search.has(id);
      context.globalAlpha = search.isEmpty || found ? 1 : 0.35;
      context.fillStyle = node.item < 0 ? root : found ? match : colors[grouping.categoryOf[node.item]];
      const drawn = wide > 3 ? wide - 1 : wide;
      context.fillRect(x, top, drawn, ROW - 1);
      if (node === this.hovered) {
        context.fillStyle = dim;
        context.fillRect(x, top, drawn, ROW - 1);
      }
      if (node === selected) {
        context.strokeStyle = mark;
        context.lineWidth = 2;
        context.strokeRect(x + 1, top + 1, Math.max(1, drawn - 2), ROW - 3);
      }
      if (wide < 24) continue;
      context.fillStyle = text;
      context.fillText(cut(this.name(node), wide - 8), x + 4, top + ROW / 2);
    }
    context.globalAlpha = 1;
  }

  private name(node: Node): string {
    const { grouping, profile, state } = this.session;
    if (node.item >= 0) return grouping.name(node.item);
    const what = state.inverted ? "callers of " : "";
    return state.focus >= 0 ? what + profile.functionName(state.focus) : state.inverted ? "all, by innermost function" : "all";
  }

  private boxAt(event: MouseEvent): Box | undefined {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top + this.scroller.scrollTop];
    return this.boxes.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + ROW);
  }

  private hover(event: MouseEvent | null) {
    const box = event ? this.boxAt(event) : undefined;
    const node = box?.node ?? null;
    if (node !== this.hovered) {
      this.hovered = node;
      this.draw();
    }
    if (!event || !node) return hideTooltip();
    const { grouping, categories, counts, profile } = this.session;
    const lines = [this.name(node)];
    if (node.item >= 0) {
      lines.push(profile.functionPlace(grouping.functionOf[node.item]), categories.list[grouping.categoryOf[node.item]].label);
    }
    lines.push(`${count(node.total)} samples (${percent(node.total, counts.all)}), ${count(node.own)} in the function itself`);
    showTooltip(event.clientX, event.clientY, lines);
  }
}

/** As much of a text as fits. Measuring each would be slow. */
function cut(text: string, width: number): string {
  const fits = Math.floor(width / CHARACTER);
  // Characters that are wide in most fonts need the space of two.
  let used = 0;
  for (let at = 0; at < text.length; at++) {
    used += text.charCodeAt(at) < 0x1100 ? 1 : 2;
    if (used > fits) return at > 1 ? text.slice(0, at - 1) + "…" : "";
  }
  return text;
}
