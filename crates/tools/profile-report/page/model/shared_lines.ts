/** Where functions begin, by number: names and files are numbers of texts. */
export interface Places {
  name: Uint32Array;
  file: Uint32Array;
  line: Uint32Array;
  column: Uint32Array;
}

/** By number: whether other functions have the name, file and line of this one, so that only the column tells them apart. Minified scripts have such functions. */
export function sharedLines({ name, file, line, column }: Places): Uint8Array {
  const key = (id: number) => `${name[id]} ${file[id]} ${line[id]}`;
  const isPlaced = (id: number) => line[id] > 0 && column[id] > 0;
  const columns = new Map<string, number>();
  const several = new Set<string>();
  for (let id = 0; id < name.length; id++) {
    if (!isPlaced(id)) continue;
    const before = columns.get(key(id));
    if (before === undefined) columns.set(key(id), column[id]);
    else if (before !== column[id]) several.add(key(id));
  }
  return Uint8Array.from(name, (_, id) => Number(isPlaced(id) && several.has(key(id))));
}

/** File and line, with the column if lines are shared, or an empty text. */
export function placeText(file: string, line: number, column: number, isShared: boolean): string {
  if (file === "" || line === 0) return file;
  return isShared ? `${file}:${line}:${column}` : `${file}:${line}`;
}

/** A name for views that show names alone: with its place, without the folder, if lines are shared. */
export function distinctName(name: string, place: string, isShared: boolean): string {
  return isShared ? `${name} ${place.slice(place.lastIndexOf("/") + 1)}` : name;
}
