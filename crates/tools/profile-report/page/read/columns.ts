/** The columns of one element with data. The encodings are documented in the crate (`src/lib.rs`). */
export class Columns {
  readonly about: Record<string, unknown>;
  private readonly columns = new Map<string, { encoding: string; rows: number; bytes: Uint8Array }>();

  constructor(data: Uint8Array) {
    const length = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
    this.about = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + length)));
    if (this.about.version !== 1) throw new Error("The data of this report has an unknown version.");
    let start = 4 + length;
    for (const [name, encoding, rows, size] of this.about.columns as [string, string, number, number][]) {
      this.columns.set(name, { encoding, rows, bytes: data.subarray(start, start + size) });
      start += size;
    }
  }

  private column(name: string, encoding: string) {
    const column = this.columns.get(name);
    if (column?.encoding !== encoding) throw new Error(`The report has no column ${name}.`);
    return column;
  }

  u32(name: string): Uint32Array {
    const { rows, bytes } = this.column(name, "u32");
    const numbers = new Uint32Array(rows);
    let at = 0;
    for (let row = 0; row < rows; row++) {
      let byte = bytes[at++];
      let number = byte & 0x7f;
      for (let shift = 7; byte >= 0x80; shift += 7) {
        byte = bytes[at++];
        number |= (byte & 0x7f) << shift;
      }
      numbers[row] = number;
    }
    return numbers;
  }

  u64(name: string): Float64Array {
    const { rows, bytes } = this.column(name, "u64");
    return wide(bytes, rows);
  }

  delta(name: string): Float64Array {
    const { rows, bytes } = this.column(name, "delta");
    const numbers = wide(bytes, rows);
    let last = 0;
    for (let row = 0; row < rows; row++) {
      const coded = numbers[row];
      last += coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
      numbers[row] = last;
    }
    return numbers;
  }

  f64(name: string): Float64Array {
    const { rows, bytes } = this.column(name, "f64");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Float64Array.from({ length: rows }, (_, row) => view.getFloat64(8 * row, true));
  }

  text(name: string): string[] {
    const lines = new TextDecoder().decode(this.column(name, "text").bytes).split("\n");
    lines.pop();
    return lines;
  }

  bytes(name: string): Uint8Array {
    return this.column(name, "bytes").bytes;
  }
}

/** Numbers up to 2^53 exactly, and larger ones to 53 bits. */
function wide(bytes: Uint8Array, rows: number): Float64Array {
  const numbers = new Float64Array(rows);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    let byte = bytes[at++];
    let number = byte & 0x7f;
    for (let scale = 128; byte >= 0x80; scale *= 128) {
      byte = bytes[at++];
      number += (byte & 0x7f) * scale;
    }
    numbers[row] = number;
  }
  return numbers;
}
