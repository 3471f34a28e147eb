import { color, el, fit } from "../dom.ts";
import { count, duration } from "../format.ts";
import { firstSample } from "../model/counts.ts";
import type { Changed, Session } from "../session.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";

const ROW = 26;
const AXIS = 20;

/** More threads share the last row. */
const MOST_THREADS = 100;

/** A thread, threads that share a row, or the heading of a process. */
interface Row {
  threads: number[];
  isHeading: boolean;
  label: string;
  title: string;
}

/** Samples by row, column and category. */
interface Bins {
  bins: Float64Array;
  kinds: number;
  columns: number;
  /** The width of a column. */
  wide: number;
  /** The most samples of a column. */
  highest: number;
}

/** What each thread did over time, and the selection of a span and of threads. */
export class Timeline {
  private readonly rows: Row[] = [];
  private readonly rowOfThread: Int32Array;
  /** The span in view. */
  view: [number, number];
  /** The chart without the selection, which is drawn over it while it is dragged. */
  private readonly chart = document.createElement("canvas");

  private drag: { start: number; hasMoved: boolean } | null = null;
  private frame = 0;

  constructor(
    private readonly session: Session,
    private readonly scroller: HTMLElement,
    private readonly labels: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
  ) {
    const { profile } = session;
    this.view = [0, this.whole];
    this.rowOfThread = new Int32Array(profile.thread.tid.length);
    this.addRows();
    this.makeLabels();
    canvas.style.height = `${this.height}px`;
    canvas.addEventListener("mousedown", (event) => this.press(event));
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", hideTooltip);
    canvas.addEventListener("dblclick", () => session.update({ span: null }));
    addEventListener("mousemove", (event) => this.drag && this.move(event));
    addEventListener("mouseup", () => this.release());
    new ResizeObserver(() => this.redraw()).observe(scroller);
  }

  /** A little more than the last sample's time, which is in it. */
  private get whole(): number {
    return this.session.profile.end + 1;
  }

  private get height(): number {
    return AXIS + this.rows.length * ROW;
  }

  get width(): number {
    return this.scroller.clientWidth - this.labels.offsetWidth;
  }

  private addRows() {
    const { profile } = this.session;
    const { thread, process, sample } = profile;
    const samples = new Float64Array(thread.tid.length);
    for (let row = 0; row < sample.thread.length; row++) samples[sample.thread[row]]++;
    const ofProcess = new Float64Array(process.pid.length);
    thread.process.forEach((id, at) => (ofProcess[id] += samples[at]));
    const threads = [...thread.tid.keys()].filter((id) => samples[id] > 0);
    threads.sort(
      (a, b) =>
        ofProcess[thread.process[b]] - ofProcess[thread.process[a]] ||
        thread.process[a] - thread.process[b] ||
        samples[b] - samples[a] ||
        a - b,
    );
    const threadsOf = new Map<number, number[]>();
    for (const id of threads) {
      const own = threadsOf.get(thread.process[id]);
      if (own) own.push(id);
      else threadsOf.set(thread.process[id], [id]);
    }
    let shown = 0;
    const others: number[] = [];
    for (const [owner, own] of threadsOf) {
      // The only thread of a process has its name; a host does not have that of its service.
      if ((own.length > 1 || profile.about.ofFleet) && shown < MOST_THREADS) {
        const title = `${profile.processTitle(owner)}: ${count(ofProcess[owner])} samples`;
        this.rows.push({ threads: own, isHeading: true, label: profile.processLabel(owner), title });
      }
      for (const id of own) {
        if (shown++ >= MOST_THREADS) {
          others.push(id);
          continue;
        }
        this.rowOfThread[id] = this.rows.length;
        const title = `${profile.threadTitle(id)}: ${count(samples[id])} samples`;
        this.rows.push({ threads: [id], isHeading: false, label: profile.threadLabel(id), title });
      }
    }
    if (others.length > 0) {
      for (const id of others) this.rowOfThread[id] = this.rows.length;
      this.rows.push({ threads: others, isHeading: false, label: `${count(others.length)} other ${profile.about.ofFleet ? "hosts" : "threads"}`, title: "" });
    }
  }

  private makeLabels() {
    this.labels.style.paddingTop = `${AXIS}px`;
    this.labels.replaceChildren(
      ...this.rows.map((row) => {
        const choose = (event: MouseEvent) => this.chooseThreads(row, event.ctrlKey || event.metaKey || event.shiftKey);
        const kind = row.isHeading ? "process" : "thread";
        return el("button", { class: `lane-label ${kind}`, title: `${row.title}\nClick to look at it alone, with Ctrl to add it or remove it.`, style: `height:${ROW}px`, click: choose }, row.label);
      }),
    );
    this.markLabels();
  }

  private chooseThreads(row: Row, add: boolean) {
    const { state } = this.session;
    const ids = row.threads;
    const all = this.rows.reduce((sum, each) => sum + (each.isHeading ? 0 : each.threads.length), 0);
    const before = state.threads ?? new Set<number>();
    const isSelected = ids.every((id) => before.has(id));
    let threads: Set<number>;
    if (add) {
      threads = new Set(before);
      for (const id of ids) isSelected ? threads.delete(id) : threads.add(id);
    } else threads = new Set(isSelected && before.size === ids.length ? [] : ids);
    const isAll = threads.size === 0 || threads.size >= all;
    this.session.update({ threads: isAll ? null : threads });
  }

  private markLabels() {
    const { threads } = this.session.state;
    const buttons = [...this.labels.children];
    this.rows.forEach((row, at) => {
      const isOn = !threads || row.threads.some((id) => threads.has(id));
      buttons[at].classList.toggle("off", !isOn);
    });
  }

  changed(changed: Changed) {
    if (changed.has("threads")) this.markLabels();
    if (changed.has("event") || changed.has("weighted")) this.redraw();
    else if (changed.has("span") || changed.has("threads")) this.drawSelection();
  }

  /** Shows the selected span alone, or all. */
  zoom() {
    const { span } = this.session.state;
    this.view = span && (this.view[0] !== span[0] || this.view[1] !== span[1]) ? [...span] : [0, this.whole];
    this.redraw();
  }

  redraw() {
    const width = this.width;
    if (width <= 0) return;
    this.drawChart(width);
    this.drawSelection();
  }

  private drawChart(width: number) {
    const { profile, categories, state } = this.session;
    const context = fit(this.chart, width, this.height);
    context.clearRect(0, 0, width, this.height);
    const kinds = categories.list.length;
    const [start, end] = this.view;
    const { time, thread, stack, event, weight } = profile.sample;
    const [from, until] = [firstSample(profile, start), firstSample(profile, end)];
    // So wide that a column usually has several samples: else heights are noise.
    const lanes = Math.max(1, this.rows.filter((row) => !row.isHeading).length);
    const wide = Math.min(8, Math.max(1, Math.round((6 * width * lanes) / Math.max(1, until - from))));
    const columns = Math.max(1, Math.ceil(width / wide));
    const bins = new Float64Array(this.rows.length * columns * kinds);
    const scale = width / Math.max(1, end - start);
    const category = categories.ofFrame;
    const { frame } = profile.stack;
    for (let row = from; row < until; row++) {
      if (state.event >= 0 && event[row] !== state.event) continue;
      const lane = this.rowOfThread[thread[row]];
      const column = Math.min(columns - 1, Math.floor(((time[row] - start) * scale) / wide));
      bins[(lane * columns + column) * kinds + category[frame[stack[row]]]] += state.weighted ? weight[row] : 1;
    }
    let highest = 0;
    for (let at = 0; at < bins.length; at += kinds) {
      let sum = 0;
      for (let kind = 0; kind < kinds; kind++) sum += bins[at + kind];
      highest = Math.max(highest, sum);
    }
    const [line, muted] = [color("--line"), color("--muted")];
    this.rows.forEach((_, lane) => {
      context.fillStyle = line;
      context.fillRect(0, AXIS + (lane + 1) * ROW - 1, width, 1);
    });
    this.drawLanes(context, { bins, kinds, columns, wide, highest });
    context.fillStyle = muted;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const step = niceStep((end - start) / Math.max(1, width / 110));
    for (let at = Math.ceil(start / step) * step; at < end; at += step) {
      const x = (at - start) * scale;
      context.fillRect(x, AXIS - 5, 1, 5);
      if (x + 60 < width) context.fillText(duration(at), x + 4, AXIS / 2);
    }
  }

  /** Pixel by pixel: a rectangle for each part of a column would take a hundred times as long. */
  private drawLanes(context: CanvasRenderingContext2D, { bins, kinds, columns, wide, highest }: Bins) {
    const scale = window.devicePixelRatio || 1;
    const colors = this.session.categories.list.map((each) => rgba(context, color(each.color)));
    const tall = Math.floor((ROW - 4) * scale);
    const [imageWidth, column] = [this.chart.width, wide * scale];
    this.rows.forEach((row, lane) => {
      if (row.isHeading) return;
      const top = Math.round((AXIS + lane * ROW + 2) * scale);
      const image = context.getImageData(0, top, imageWidth, tall);
      const pixels = new Uint32Array(image.data.buffer);
      for (let at = 0; at < columns; at++) {
        const first = (lane * columns + at) * kinds;
        const [left, right] = [Math.round(at * column), Math.min(imageWidth, Math.round((at + 1) * column))];
        let sum = 0;
        let y = tall;
        for (let kind = 0; kind < kinds; kind++) {
          if (bins[first + kind] === 0) continue;
          sum += bins[first + kind];
          // A single sample can be seen.
          const until = Math.min(y === tall ? tall - 1 : y, tall - Math.round((sum / highest) * tall));
          for (; y > until; y--) pixels.fill(colors[kind], (y - 1) * imageWidth + left, (y - 1) * imageWidth + right);
        }
      }
      context.putImageData(image, 0, top);
    });
  }

  private drawSelection() {
    const width = this.width;
    if (width <= 0) return;
    const context = fit(this.canvas, width, this.height);
    context.clearRect(0, 0, width, this.height);
    context.drawImage(this.chart, 0, 0, width, this.height);
    const { span, threads } = this.session.state;
    context.fillStyle = color("--veil");
    this.rows.forEach((row, lane) => {
      if (threads && !row.threads.some((id) => threads.has(id))) context.fillRect(0, AXIS + lane * ROW, width, ROW - 1);
    });
    if (!span) return;
    const [from, until] = span.map((time) => this.xOf(time));
    context.fillRect(0, 0, Math.max(0, from), this.height);
    context.fillRect(until, 0, Math.max(0, width - until), this.height);
    context.fillStyle = color("--accent");
    context.fillRect(from - 1, 0, 2, this.height);
    context.fillRect(until - 1, 0, 2, this.height);
  }

  xOf(time: number): number {
    return ((time - this.view[0]) / Math.max(1, this.view[1] - this.view[0])) * this.width;
  }

  private timeAt(event: MouseEvent): number {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const part = Math.min(1, Math.max(0, x / this.width));
    return Math.round(this.view[0] + part * (this.view[1] - this.view[0]));
  }

  private press(event: MouseEvent) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.drag = { start: this.timeAt(event), hasMoved: false };
  }

  private move(event: MouseEvent) {
    const { drag } = this;
    if (!drag) return;
    const at = this.timeAt(event);
    if (Math.abs(this.xOf(at) - this.xOf(drag.start)) < 3 && !drag.hasMoved) return;
    drag.hasMoved = true;
    const span: [number, number] = at < drag.start ? [at, drag.start] : [drag.start, at];
    // As often as the screen shows it.
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => span[0] < span[1] && this.session.update({ span }));
    showTooltip(event.clientX, event.clientY, [`${duration(span[0])} to ${duration(span[1])}`, duration(span[1] - span[0])]);
  }

  private release() {
    if (!this.drag) return;
    if (!this.drag.hasMoved && this.session.state.span) this.session.update({ span: null });
    this.drag = null;
  }

  private hover(event: MouseEvent) {
    if (this.drag) return;
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const row = this.rows[Math.floor((y - AXIS) / ROW)];
    showTooltip(event.clientX, event.clientY, [duration(this.timeAt(event)), row?.label ?? "", row?.title ?? ""]);
  }
}

/** 1, 2 or 5 times a power of ten, not below `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

/** A colour as a pixel of an image. */
function rgba(context: CanvasRenderingContext2D, name: string): number {
  context.fillStyle = name;
  // The canvas spells it `#rrggbb`.
  const number = parseInt(String(context.fillStyle).slice(1), 16);
  return ((0xff << 24) | ((number & 0xff) << 16) | (number & 0xff00) | (number >> 16)) >>> 0;
}
