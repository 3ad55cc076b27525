// Folds a log into session rows as a program does that parses every line, and prints the seconds.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const began = process.hrtime.bigint();
const rows = new Map();
for (const name of readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort()) {
  const text = readFileSync(join(folder, name), "utf8");
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
    const event = JSON.parse(text.slice(start, end));
    start = end + 1;
    let row = rows.get(event.stream);
    if (row === undefined) rows.set(event.stream, (row = { turns: 0, tokens: 0, updated: "" }));
    row.updated = event.time;
    if (event.type === "turn") {
      row.turns += 1;
      if (event.data.tokens) row.tokens += event.data.tokens.in + event.data.tokens.out;
    }
  }
}
rows.delete("log");
console.log(Number(process.hrtime.bigint() - began) / 1e9, rows.size);
