import { el } from "../dom.ts";
import { count, percent } from "../format.ts";
import type { Heat } from "../model/heat.ts";

/** The samples of a line or an instruction, in percent of `all`: those in it, and those in it or in what it called. */
export function heatCells(heat: Heat | undefined, all: number): HTMLElement[] {
  const cell = (part: number | undefined, kind: string) => el("span", { class: `heat ${kind}`, title: part ? `${count(part)} samples` : undefined }, part ? percent(part, all).replace(" %", "") : "");
  return [cell(heat?.own, "own"), cell(heat?.total, "total")];
}

/** The background of a line or an instruction. */
export function heatStyle(heat: Heat | undefined, all: number): string {
  if (!heat || heat.own === 0 || all === 0) return "";
  // The eye sees shares as it hears loudness.
  return `--heat:${Math.min(1, 0.12 + Math.sqrt(heat.own / all)).toFixed(3)}`;
}
