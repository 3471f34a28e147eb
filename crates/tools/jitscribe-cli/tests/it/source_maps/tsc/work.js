"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.weigh = weigh;
function weigh(items) {
    let sum = 0;
    for (const item of items) {
        for (let i = 0; i < 2000; i++) {
            sum = (sum * 31 + item.size * i) % 1000003;
        }
    }
    return sum;
}
const all = [];
for (let i = 0; i < 100; i++)
    all.push({ name: `item ${i}`, size: i });
let total = 0;
const end = Date.now() + 800;
while (Date.now() < end) {
    total += weigh(all);
    [total].forEach((x) => { for (let i = 0; i < 200000; i++)
        x = (x * 7 + i) % 65537; total += x; });
    [total].forEach((x) => { for (let i = 0; i < 200000; i++)
        x = (x * 5 + i) % 32771; total += x; });
}
if (total < 0)
    throw new Error("none of the above is negative");
//# sourceMappingURL=work.js.map