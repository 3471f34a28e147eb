import type { StackCounts } from "./counts.ts";
import type { Profile } from "./profile.ts";
import { topmost } from "./topmost.ts";

export interface Heat {
  own: number;
  total: number;
}

/** The samples of one code by offset. */
export function heatOfOffsets(profile: Profile, counts: StackCounts, code: number): Map<number, Heat> {
  const { code: codes, offset, depth } = profile.frame;
  const heat = new Map<number, Heat>();
  const keys = new Map<number, number>();
  const keyOfFrame = new Int32Array(codes.length).fill(-1);
  for (let frame = 0; frame < codes.length; frame++) {
    if (codes[frame] !== code) continue;
    if (!keys.has(offset[frame])) {
      keys.set(offset[frame], keys.size);
      heat.set(offset[frame], { own: 0, total: 0 });
    }
    // The frames that are inlined at an address are one instruction.
    if (depth[frame] === 0) keyOfFrame[frame] = keys.get(offset[frame])!;
  }
  const first = topmost(profile, keyOfFrame, keys.size);
  const { frame: frames } = profile.stack;
  for (let at = 0; at < frames.length; at++) {
    const frame = frames[at];
    if (codes[frame] !== code || counts.total[at] === 0) continue;
    const entry = heat.get(offset[frame])!;
    entry.own += counts.own[at];
    if (first[at] === 1) entry.total += counts.total[at];
  }
  return heat;
}

/** The samples of a function, and of what is inlined into it, by file and line. `code`: of one compilation; −1: of all. */
export function heatOfLines(
  profile: Profile,
  counts: StackCounts,
  id: number,
  code: number,
  fileOf: (id: number) => string,
): Map<string, Map<number, Heat>> {
  const { function: functions, code: codes, line } = profile.frame;
  const byFile = new Map<string, Map<number, Heat>>();
  const entries: Heat[] = [];
  const numbers = new Map<Heat, number>();
  const keyOfFrame = new Int32Array(functions.length).fill(-1);
  for (let frame = 0; frame < functions.length; frame++) {
    const isIn = code >= 0 ? codes[frame] === code : functions[frame] === id || (codes[frame] >= 0 && profile.code.function[codes[frame]] === id);
    if (!isIn || line[frame] === 0) continue;
    const file = fileOf(functions[frame]);
    let lines = byFile.get(file);
    if (!lines) byFile.set(file, (lines = new Map()));
    let entry = lines.get(line[frame]);
    if (!entry) {
      lines.set(line[frame], (entry = { own: 0, total: 0 }));
      numbers.set(entry, entries.length);
      entries.push(entry);
    }
    keyOfFrame[frame] = numbers.get(entry)!;
  }
  const first = topmost(profile, keyOfFrame, entries.length);
  const { frame: frames } = profile.stack;
  for (let at = 0; at < frames.length; at++) {
    const key = keyOfFrame[frames[at]];
    if (key < 0 || counts.total[at] === 0) continue;
    entries[key].own += counts.own[at];
    if (first[at] === 1) entries[key].total += counts.total[at];
  }
  return byFile;
}

/** The samples of each code. */
export function heatOfCodes(profile: Profile, counts: StackCounts): Heat[] {
  const heat = Array.from({ length: profile.code.function.length }, () => ({ own: 0, total: 0 }));
  const { code: codes } = profile.frame;
  const first = topmost(profile, codes, heat.length);
  const { frame: frames } = profile.stack;
  for (let at = 0; at < frames.length; at++) {
    const code = codes[frames[at]];
    if (code < 0) continue;
    heat[code].own += counts.own[at];
    if (first[at] === 1) heat[code].total += counts.total[at];
  }
  return heat;
}
