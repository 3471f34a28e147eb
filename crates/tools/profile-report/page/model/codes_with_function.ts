import type { Profile } from "./profile.ts";

/** The codes of a function and, if they were sampled, those into which it was inlined. */
export function codesWithFunction(profile: Profile, id: number): number[] {
  const codes = new Set(profile.codesOf(id));
  profile.frame.function.forEach((each, frame) => {
    if (each === id && profile.frame.code[frame] >= 0) codes.add(profile.frame.code[frame]);
  });
  return [...codes];
}
