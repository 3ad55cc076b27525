// Speaks to a server of annals with the official TypeScript SDK, and fails where an answer is not what it should be.
//
//     client.mjs ERA PIPE ANNALS mcp [ARGUMENT...]
//     client.mjs ERA PIPE ANNALS URL TOKEN
//
// The SDK is in the node_modules beside the interpreter's folder; the arguments are those of client.py.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const [era, pipe, command, ...args] = process.argv.slice(2);
const need = createRequire(join(dirname(process.argv0), "../x"));
const { Client, StreamableHTTPClientTransport } = need("@modelcontextprotocol/client");
const { StdioClientTransport } = need("@modelcontextprotocol/client/stdio");

const TOOLS = [
  "sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn",
  "session_status", "agents_list", "runs_wait", "runs_cancel",
];
const CHAT = "session://telegram%3A42";

const mode = era < "2026" ? "legacy" : "auto";
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
const transport = args[0] === "mcp"
  ? new StdioClientTransport({ command, args, env: process.env })
  : new StreamableHTTPClientTransport(new URL(args[0]), { requestInit: { headers: { Authorization: `Bearer ${args[1]}` } } });
client.onerror = (error) => {
  throw error;
};

/** What a tool answers. */
async function call(name, given = {}) {
  const { isError, content, structuredContent } = await client.callTool({ name, arguments: given });
  assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  assert.ok(!isError, content[0].text);
  return structuredContent;
}

/** A call that a tool refuses, and what it says of it. */
async function wrong(name, given, code, words) {
  const { isError, content } = await client.callTool({ name, arguments: given });
  assert.ok(isError, content[0].text);
  const { error } = JSON.parse(content[0].text);
  assert.equal(error.code, code);
  assert.ok(`${error.message} ${error.hint}`.includes(words), content[0].text);
}

/** Another program says something in a chat. */
const push = (channel, chat, text) => execFileSync(command, ["session", "push", channel, chat, "user", text]);

/** The next notification of a method. */
function heard(method) {
  return new Promise((resolve) => client.setNotificationHandler(method, ({ params }) => resolve(params)));
}

await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion(), era);
assert.equal(client.getServerVersion().name, "annals");
assert.ok(client.getInstructions().includes("no failure"));

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), TOOLS);

assert.equal((await call("sessions_list")).total, 2);
const said = await call("sessions_history", { sessionKey: "telegram:42" });
assert.deepEqual(said.messages.map((message) => message.content), ["secret plans"]);
assert.equal((await call("sessions_search", { query: "plans" })).results[0].key, "telegram:42");
assert.equal((await call("session_status")).session.key, "cli:default");
assert.deepEqual((await call("agents_list")).agents.map((agent) => agent.id), ["main", "slow"]);
await wrong("sessions_list", { limit: "x" }, "invalid_input", '"maximum":200');
await wrong("sessions_history", {}, "invalid_input", "sessionKey (must be there)");
await wrong("sessions_history", { sessionKey: "cli:gone" }, "not_found", "cli:gone");
await wrong("sessions_search", { query: "x", role: "bard" }, "invalid_input", "assistant");
await wrong("runs_wait", { runIds: [] }, "invalid_input", "1 to 32");
await assert.rejects(client.callTool({ name: "sessions_sing" }), { code: -32602 });

const { resources } = await client.listResources();
assert.ok(resources.some((resource) => resource.uri === CHAT));
const { contents } = await client.readResource({ uri: CHAT });
assert.deepEqual(JSON.parse(contents[0].text).messages, said.messages);
const { resourceTemplates } = await client.listResourceTemplates();
assert.deepEqual(resourceTemplates.map((one) => one.uriTemplate), ["session://{key}", "run://{id}"]);
await assert.rejects(client.readResource({ uri: "run://gone" }), { code: mode === "legacy" ? -32002 : -32602 });

const updated = heard("notifications/resources/updated");
const changed = heard("notifications/resources/list_changed");
if (mode === "legacy") {
  await client.subscribeResource({ uri: CHAT });
} else {
  const wanted = { resourceSubscriptions: [CHAT], resourcesListChanged: true };
  const { honoredFilter } = await client.listen(wanted);
  assert.deepEqual(honoredFilter, wanted);
}
push("telegram", "42", "one");
assert.equal((await updated).uri, CHAT);
push("matrix", "new", "two");
await changed;

const sent = await call("sessions_send", { sessionKey: "telegram:42", message: "go", timeoutSeconds: 120 });
assert.deepEqual([sent.status, sent.reply], ["ok", "done"]);
const slow = await call("sessions_spawn", { task: "wait", agentId: "slow" });
const agent = createWriteStream(pipe);
await once(agent, "open");
const given = { runIds: [slow.runId], timeoutSeconds: 60 };
const enough = new AbortController();
let told;
const waits = client.callTool({ name: "runs_wait", arguments: given }, {
  signal: enough.signal,
  onprogress: ({ message }) => {
    told = message;
    enough.abort("enough");
  },
});
await assert.rejects(waits);
assert.match(told, /^waiting for /);
const open = await call("runs_wait", { runIds: [slow.runId], timeoutSeconds: 0 });
assert.equal(open.runs[0].status, "running");
const ended = await call("runs_cancel", { runId: slow.runId });
assert.ok(["killed", "kill_requested"].includes(ended.status), ended.status);
const last = await call("runs_wait", given);
assert.equal(last.runs[0].status, "killed");
agent.destroy();
await client.close();
console.log("all well");
