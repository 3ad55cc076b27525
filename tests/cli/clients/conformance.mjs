// Runs scenarios of the conformance suite of the Model Context Protocol against a server that wants a token, of which the
// suite knows nothing: a door before the server adds it, and passes on everything else as it is.
//
//     conformance.mjs URL TOKEN SCENARIO...
//
// The suite is in the node_modules beside the interpreter's folder. Prints what each scenario found, one line a check.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const [url, token, ...scenarios] = process.argv.slice(2);
const suite = join(dirname(process.argv0), "../node_modules/.bin/conformance");

const door = createServer((asked, answer) => {
  const headers = [...asked.rawHeaders, "Authorization", `Bearer ${token}`];
  const { hostname, port } = new URL(url);
  const inside = request({ hostname, port, path: asked.url, method: asked.method, headers, setHost: false });
  inside.on("response", (told) => {
    answer.writeHead(told.statusCode, told.rawHeaders);
    told.pipe(answer);
  });
  inside.on("error", () => answer.destroy());
  answer.on("close", () => inside.destroy());
  asked.pipe(inside);
});
await new Promise((open) => door.listen(0, "127.0.0.1", open));
const outside = `http://127.0.0.1:${door.address().port}${new URL(url).pathname}`;

for (const scenario of scenarios) {
  const results = mkdtempSync(join(homedir(), "conformance-"));
  const args = [suite, "server", "--url", outside, "--scenario", scenario, "-o", results];
  const ran = await promisify(execFile)(process.execPath, args).catch((error) => error);
  const [made] = readdirSync(results);
  const checks = made ? JSON.parse(readFileSync(join(results, made, "checks.json"))) : [];
  if (checks.length === 0) {
    console.log(`${scenario}: nothing was checked: ${ran.stdout}${ran.stderr}`);
  }
  for (const { id, status, errorMessage } of checks) {
    console.log(`${scenario}: ${id}: ${status}${errorMessage ? ` ${errorMessage}` : ""}`);
  }
}
door.close();
