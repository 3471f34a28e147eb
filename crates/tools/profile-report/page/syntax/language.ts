export type Kind = "comment" | "string" | "keyword" | "number";

/** A part of a text that is not code: from a mark that opens it to one that closes it. */
export interface Region {
  /** null: it has no colour. */
  kind: "comment" | "string" | null;
  /** A text, or a sticky expression whose first characters are in `first`. */
  open: string | RegExp;
  first?: string;
  /** What closes it; "": the end of the line; null: what opens it is all of it. A `$1` is the first group of `open`. */
  close: string | null;
  /** It may go on in the next line. */
  lines?: boolean;
  /** A backslash takes away the meaning of what follows it. */
  escapes?: boolean;
  /** What closes it stands for itself if it is there twice. */
  doubled?: boolean;
  /** Regions of the same kind may be in it. */
  nests?: boolean;
  /** `close` is at the beginning of a line, behind spaces, and no word goes on behind it. */
  ownLine?: boolean;
  /** Opens an expression within, which a brace closes. */
  inserts?: string;
}

export interface Language {
  words: ReadonlySet<string>;
  /** Words that may also be names: they are none if another word follows. */
  soft?: ReadonlySet<string>;
  regions: readonly Region[];
  /** What a text begins in, if that is not code. */
  start?: Region;
  /** A slash may begin a regular expression. */
  slashes?: boolean;
  /** A `#` at the beginning of a line begins a directive. */
  directives?: boolean;
  /** Numbers may have apostrophes. */
  apostrophes?: boolean;
  /** A point behind a number ends a clause, and `#` is behind the base of a number. */
  clauses?: boolean;
}
