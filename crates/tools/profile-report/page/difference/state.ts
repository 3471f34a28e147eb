/** One of the two recordings. */
export type Side = "before" | "after";

export const ORDERS = ["change", "before", "after", "chance", "verdict", "name"] as const;
export type Order = (typeof ORDERS)[number];

/** What is looked at, and how: all that a link to the page has. */
export interface State {
  /** The recording that the widths of boxes show. */
  width: Side;
  /** What the table shows: samples in functions, or in what they called as well. */
  compared: "own" | "total";
  /** Show only functions whose difference is more than chance. */
  changes: boolean;
  /** By what the table is sorted. */
  order: Order;
  query: string;
  /** The selected function, or −1. */
  fn: number;
}

export const INITIAL: State = { width: "after", compared: "own", changes: false, order: "change", query: "", fn: -1 };
