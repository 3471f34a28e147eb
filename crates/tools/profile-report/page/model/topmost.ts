import type { Profile } from "./profile.ts";

/**
 * For each stack whether its frame's key is on it for the first time, so that a recursive function counts once.
 * Frames with the key −1 are left out.
 */
export function topmost(profile: Profile, keyOfFrame: Int32Array, keys: number): Uint8Array {
  const { parent, frame, firstChild, nextSibling } = profile.stack;
  const first = new Uint8Array(frame.length);
  const onPath = new Int32Array(keys);
  for (let root = 0; root < frame.length; root++) {
    if (parent[root] >= 0) continue;
    let at = root;
    for (;;) {
      const key = keyOfFrame[frame[at]];
      if (key >= 0 && onPath[key]++ === 0) first[at] = 1;
      if (firstChild[at] >= 0) {
        at = firstChild[at];
        continue;
      }
      for (;;) {
        const left = keyOfFrame[frame[at]];
        if (left >= 0) onPath[left]--;
        if (at === root || nextSibling[at] >= 0) break;
        at = parent[at];
      }
      if (at === root) break;
      at = nextSibling[at];
    }
  }
  return first;
}
