// TypeScript whose lines differ from those of what it is compiled to: all work is behind line 30. Each function does its work in
// one line, which ends with a comment that says so.

interface Shape {
  name: string;
  corners: number;
}

interface Point {
  x: number;
  y: number;
}

type Path = {
  points: Point[];
  shape: Shape;
};

enum Kind {
  Open,
  Closed,
}

abstract class Base {
  abstract kind(): Kind;
}

/*
 * The work.
 */
class Walk extends Base implements Shape {
  corners: number = 0;
  constructor(public name: string, private readonly path: Path) { super(); }

  kind(): Kind {
    return Kind.Closed;
  }

  length(): number {
    let sum = 0;
    for (const point of this.path.points) sum += Math.abs(point.x) + Math.abs(point.y); // hot: length
    return sum;
  }
}

function scatter(
  count: number,
  seed: number,
): Point[] {
  const points: Point[] = [];
  let state: number = seed;
  for (let i = 0; i < count; i++) { state = (state * 1103515245 + 12345) % 2147483648; points.push({ x: state % 97, y: -(state % 89) }); } // hot: scatter
  return points;
}

function mixed<T extends number>(a: T, rounds: number): number {
  let hash: number = a as number;
  for (let i = 0; i < rounds; i++) hash = (hash ^ (hash << 5) ^ (i * 31)) | 0; // hot: mixed
  return hash;
}

// About a second and a half of processor time, however busy the machine is.
let total: number = 0;
for (let round = 0; round < 25000; round++) {
  const walk = new Walk("walk", { points: scatter(500, total & 1023), shape: { name: "a", corners: 4 } });
  total += walk.length() + mixed(total & 65535, 20000) + walk.kind();
}
console.log(total);
