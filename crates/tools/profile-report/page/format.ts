const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `1,234,567`. */
export function count(number: number): string {
  return whole.format(number);
}

/** `12.3 %`. */
export function percent(part: number, all: number): string {
  return all > 0 ? `${((100 * part) / all).toFixed(1)} %` : "–";
}

/** `+1.23`. */
export function signed(number: number): string {
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}

/** `0.023`, `<0.001`. */
export function probability(number: number): string {
  return number < 0.001 ? "<0.001" : number.toFixed(3);
}

/** A time or a duration in nanoseconds, with the unit that suits it. */
export function duration(nanoseconds: number): string {
  const size = Math.abs(nanoseconds);
  if (size >= 1e9) return `${(nanoseconds / 1e9).toFixed(3)} s`;
  if (size >= 1e6) return `${(nanoseconds / 1e6).toFixed(2)} ms`;
  if (size >= 1e3) return `${(nanoseconds / 1e3).toFixed(1)} µs`;
  return `${Math.round(nanoseconds)} ns`;
}

/** `1.5 KiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

/** The last parts of a path. */
export function shortPath(path: string): string {
  return path.length <= 48 ? path : "…" + path.slice(-47);
}
