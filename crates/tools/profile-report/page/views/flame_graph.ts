import { color, fit } from "../dom.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";

/** A function below others. */
export interface FlameNode<Node> {
  /** What is counted as one; −1: the root. */
  item: number;
  parent: Node | null;
  depth: number;
  /** The samples that its width shows. */
  total: number;
}

/** What a flame graph shows, and what its boxes do. */
export interface FlameContent<Node> {
  readonly tree: {
    readonly root: Node;
    /** Those with the most samples come first. */
    children(node: Node): Node[];
  };
  name(node: Node): string;
  /** The colour of each node in the present theme. */
  fills(): (node: Node) => string;
  /** Which nodes match the search; null: nothing is searched for. */
  found(): ((node: Node) => boolean) | null;
  /** Whether a node that is not the selected one is marked, too. */
  isMarked(node: Node): boolean;
  /** The lines of its tooltip below its name. */
  describe(node: Node): string[];
  select(node: Node): void;
  /** Shows more of what is selected. */
  open(): void;
}

export interface Box<Node> {
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

/** Boxes as wide as their samples, below the boxes of their callers (or of what they call, if the tree is one of callers). */
export class FlameGraph<Node extends FlameNode<Node>> {
  boxes: Box<Node>[] = [];
  /** The items from the root to the node that has the whole width: nodes are others when samples are counted again. */
  private zoom: number[] = [];
  private selected: number[] = [];
  private hovered: Node | null = null;

  constructor(
    private readonly content: FlameContent<Node>,
    private readonly scroller: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly space: HTMLElement,
  ) {
    scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => this.choose(this.boxAt(event)?.node));
    canvas.addEventListener("dblclick", () => content.open());
    new ResizeObserver(() => this.layout()).observe(scroller);
  }

  /** Forgets what is selected in a tree that is no longer shown. */
  forget() {
    this.zoom = [];
    this.selected = [];
    this.scroller.scrollTop = 0;
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
    if (node.item >= 0) this.content.select(node);
    this.layout();
  }

  /** Moves the selection to a neighbour. */
  move(key: "up" | "down" | "left" | "right") {
    const { tree } = this.content;
    const node = this.follow(this.selected);
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
    this.content.select(next);
    this.layout();
    const y = next.depth * ROW;
    if (y < this.scroller.scrollTop) this.scroller.scrollTop = y;
    if (y + 2 * ROW > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = y - ROW;
  }

  layout() {
    const width = this.scroller.clientWidth;
    if (width === 0) return;
    const { tree } = this.content;
    const boxes: Box<Node>[] = [];
    const top = this.follow(this.zoom);
    for (let above = top.parent; above; above = above.parent) boxes.push({ node: above, x: 0, y: above.depth * ROW, width });
    const scale = top.total > 0 ? width / top.total : 0;
    const pending: Box<Node>[] = [{ node: top, x: 0, y: top.depth * ROW, width }];
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
    const { content } = this;
    const context = fit(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    const [fill, found] = [content.fills(), content.found()];
    const [text, dim, root, match, mark] = ["--box-text", "--dim", "--root", "--match", "--accent"].map(color);
    const selected = this.selected.length > 0 ? this.follow(this.selected) : null;
    for (const { node, x, y, width: wide } of this.boxes) {
      const top = y - scrollTop;
      if (top + ROW < 0 || top > height) continue;
      const isFound = node.item >= 0 && found !== null && found(node);
      context.globalAlpha = found === null || isFound ? 1 : 0.35;
      context.fillStyle = node.item < 0 ? root : isFound ? match : fill(node);
      const drawn = wide > 3 ? wide - 1 : wide;
      context.fillRect(x, top, drawn, ROW - 1);
      if (node === this.hovered) {
        context.fillStyle = dim;
        context.fillRect(x, top, drawn, ROW - 1);
      }
      if (node === selected || content.isMarked(node)) {
        context.strokeStyle = mark;
        context.lineWidth = 2;
        context.strokeRect(x + 1, top + 1, Math.max(1, drawn - 2), ROW - 3);
      }
      if (wide < 24) continue;
      context.fillStyle = text;
      context.fillText(cut(content.name(node), wide - 8), x + 4, top + ROW / 2);
    }
    context.globalAlpha = 1;
  }

  /** The node below the root with these items, or the last one on the way that there is. */
  private follow(path: readonly number[]): Node {
    const { tree } = this.content;
    let node = tree.root;
    for (const item of path) {
      const next = tree.children(node).find((child) => child.item === item);
      if (!next) break;
      node = next;
    }
    return node;
  }

  private boxAt(event: MouseEvent): Box<Node> | undefined {
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
    showTooltip(event.clientX, event.clientY, [this.content.name(node), ...this.content.describe(node)]);
  }
}

/** The items from the root to a node. */
function pathTo<Node extends FlameNode<Node>>(node: Node): number[] {
  const path = [];
  for (let at: Node | null = node; at && at.item >= 0; at = at.parent) path.push(at.item);
  return path.reverse();
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
