import { el } from "../dom.ts";
import type { Token } from "./tokens.ts";

/** A line with its colours, as text nodes. */
export function paint(text: string, tokens: readonly Token[]): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let at = 0;
  for (const { kind, from, to } of tokens) {
    if (from > at) parts.push(text.slice(at, from));
    parts.push(el("span", { class: `syntax-${kind}` }, text.slice(from, to)));
    at = to;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}
