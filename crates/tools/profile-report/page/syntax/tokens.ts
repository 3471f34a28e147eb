import type { Kind, Language, Region } from "./language.ts";

/** A part of a line that has a colour. */
export interface Token {
  kind: Kind;
  from: number;
  to: number;
}

/** What is open at an end of a line: a region, or an expression within one. */
export interface Open {
  readonly region: Region;
  readonly close: string | null;
  /** Regions within the region, or braces within the expression. */
  readonly depth: number;
  readonly isInserted: boolean;
  readonly outer: Open | null;
}

/** What is open at the beginning of a text. */
export function startOf(language: Language): Open | null {
  const { start } = language;
  return start ? { region: start, close: start.close, depth: 0, isInserted: false, outer: null } : null;
}

/**
 * Splits a line of a text. `open` is what is open at its beginning; the result is what is open at its end. Each character is looked at a fixed number of
 * times, and no expression can go back over more than it has read: the text may be anything.
 */
export function tokensOf(language: Language, text: string, open: Open | null, emit: (token: Token) => void): Open | null {
  let at = 0;
  let now = open;
  // Whether a slash would begin a regular expression: where a value is expected.
  let isValueNext = true;
  let [isBlank, mayBeExpression] = [true, true];
  const regions = regionsByFirst(language);
  while (at < text.length) {
    if (now && !now.isInserted) {
      isBlank = false;
      const { end, next } = endOf(text, at, now);
      if (now.region.kind && end > at) emit({ kind: now.region.kind, from: at, to: end });
      now = next;
      at = end;
      isValueNext = now?.isInserted ?? false;
      continue;
    }
    const code = text.charCodeAt(at);
    if (code === 32 || code === 9) {
      at++;
      continue;
    }
    const isFirst = isBlank;
    isBlank = false;
    const opened = openAt(regions, text, at, now);
    if (opened) {
      const { open: inside, length } = opened;
      const { end, next } = endOf(text, at + length, inside);
      const { kind } = inside.region;
      if (kind) emit({ kind, from: at, to: end });
      now = next;
      at = end;
      if (kind !== "comment") isValueNext = now?.isInserted ?? false;
      continue;
    }
    if (isWordStart(code)) {
      const end = endOfWord(text, at);
      const isMember = at > 0 && text[at - 1] === "." && text[at - 2] !== ".";
      const word = text.slice(at, end);
      const isSoft = () => language.soft?.has(word) === true && text[end] === " " && isWordStart(text.charCodeAt(end + 1));
      const isKeyword = !isMember && (language.words.has(word) || isSoft());
      if (isKeyword) emit({ kind: "keyword", from: at, to: end });
      isValueNext = isKeyword;
      at = end;
      continue;
    }
    const isFraction = code === 46 && isDigit(text.charCodeAt(at + 1)) && text[at - 1] !== ".";
    if (isDigit(code) || (isFraction && isValueNext)) {
      const end = endOfNumber(text, at, language);
      emit({ kind: "number", from: at, to: end });
      isValueNext = false;
      at = end;
      continue;
    }
    if (code === 35 && language.directives && isFirst) {
      let from = at + 1;
      while (text[from] === " " || text[from] === "\t") from++;
      const end = endOfWord(text, from);
      emit({ kind: "keyword", from: at, to: end });
      at = end;
      continue;
    }
    if (code === 47 && language.slashes && isValueNext && mayBeExpression) {
      const end = endOfExpression(text, at);
      // Once is enough: the line is not read to its end for each slash in it.
      mayBeExpression = end > 0;
      if (end > 0) {
        emit({ kind: "string", from: at, to: end });
        isValueNext = false;
        at = end;
        continue;
      }
    }
    if (now && now.depth === 0 && code === 125 && now.outer) {
      // The brace is the string's, as that which opened the expression.
      const { end, next } = endOf(text, at + 1, now.outer);
      if (now.outer.region.kind) emit({ kind: now.outer.region.kind, from: at, to: end });
      now = next;
      at = end;
      isValueNext = now?.isInserted ?? false;
      continue;
    }
    if (now && code === 123) now = { ...now, depth: now.depth + 1 };
    else if (now && code === 125) now = { ...now, depth: now.depth - 1 };
    isValueNext = code !== 41 && code !== 93 && code !== 125;
    at++;
  }
  // What ends with its line.
  while (now && !now.isInserted && !now.region.lines && !isContinued(text, now)) now = now.outer;
  return now;
}

/** Where a region ends: what is read of it, and what is open behind that. */
function endOf(text: string, start: number, open: Open): { end: number; next: Open | null } {
  const { region, close } = open;
  if (close === "") return { end: text.length, next: open.outer };
  if (close === null) return { end: start, next: open.outer };
  if (region.ownLine) {
    // The line in which it is opened does not close it.
    const from = text.length - text.trimStart().length;
    const isEnd = start === 0 && text.startsWith(close, from) && !isWord(text.charCodeAt(from + close.length));
    return isEnd ? { end: from + close.length, next: open.outer } : { end: text.length, next: open };
  }
  const { escapes, doubled, nests, inserts } = region;
  const again = typeof region.open === "string" ? region.open : "";
  let { depth } = open;
  for (let at = start; at < text.length; ) {
    if (escapes && text.charCodeAt(at) === 92) at += 2;
    else if (doubled && text.startsWith(close, at) && text.startsWith(close, at + close.length)) at += 2 * close.length;
    else if (text.startsWith(close, at)) {
      at += close.length;
      if (depth === 0) return { end: at, next: open.outer };
      depth--;
    } else if (nests && text.startsWith(again, at)) {
      at += again.length;
      depth++;
    } else if (inserts && text.startsWith(inserts, at)) {
      const rest = depth === open.depth ? open : { ...open, depth };
      return { end: at + inserts.length, next: { ...open, depth: 0, isInserted: true, outer: rest } };
    } else at++;
  }
  return { end: text.length, next: depth === open.depth ? open : { ...open, depth } };
}

function openAt(regions: Map<number, readonly Region[]>, text: string, at: number, outer: Open | null): { open: Open; length: number } | null {
  for (const region of regions.get(text.charCodeAt(at)) ?? []) {
    const { open } = region;
    if (typeof open === "string") {
      if (text.startsWith(open, at)) return { open: { region, close: region.close, depth: 0, isInserted: false, outer }, length: open.length };
      continue;
    }
    open.lastIndex = at;
    const found = open.exec(text);
    if (!found) continue;
    const close = region.close?.replace("$1", () => found[1] ?? "") ?? null;
    return { open: { region, close, depth: 0, isInserted: false, outer }, length: found[0].length };
  }
  return null;
}

const BY_FIRST = new WeakMap<Language, Map<number, Region[]>>();

/** The regions of a language by the character that they begin with, in their order. */
function regionsByFirst(language: Language): Map<number, readonly Region[]> {
  let all = BY_FIRST.get(language);
  if (all) return all;
  all = new Map();
  for (const region of language.regions) {
    const first = typeof region.open === "string" ? region.open[0] : (region.first ?? "");
    for (const character of first) {
      const code = character.charCodeAt(0);
      all.set(code, [...(all.get(code) ?? []), region]);
    }
  }
  BY_FIRST.set(language, all);
  return all;
}

/** A backslash at the end of a line continues a string of one line, in languages that have escapes. */
function isContinued(text: string, { region }: Open): boolean {
  if (!region.escapes) return false;
  let backslashes = 0;
  while (text.charCodeAt(text.length - 1 - backslashes) === 92) backslashes++;
  return backslashes % 2 === 1;
}

function isWordStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || code === 36 || code >= 128;
}

function isWord(code: number): boolean {
  return isWordStart(code) || isDigit(code);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function endOfWord(text: string, at: number): number {
  while (at < text.length && isWord(text.charCodeAt(at))) at++;
  return at;
}

function endOfNumber(text: string, start: number, { apostrophes, clauses }: Language): number {
  const isDecimal = text[start] !== "0" || !/[xX]/.test(text[start + 1] ?? "");
  let at = start;
  while (at < text.length) {
    const [code, next] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
    const isExponent = isDecimal && (code === 43 || code === 45) && /[eE]/.test(text[at - 1]) && isDigit(next);
    const isPoint = code === 46 && (isDigit(next) || (!clauses && next !== 46 && !isWordStart(next)));
    // 1'000, 16#ff.
    const isSeparator = ((apostrophes && code === 39) || (clauses && code === 35)) && isWord(next);
    if (!isWord(code) && !isExponent && !isPoint && !isSeparator) break;
    at++;
  }
  return at;
}

/** The end of a regular expression that begins with this slash, with its flags; 0 if it does not end in the line. */
function endOfExpression(text: string, start: number): number {
  let isInClass = false;
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 92) at++;
    else if (code === 91) isInClass = true;
    else if (code === 93) isInClass = false;
    else if (code === 47 && !isInClass) return endOfWord(text, at + 1);
  }
  return 0;
}
