"""Speaks to a server of annals with the official Python SDK, and fails where an answer is not what it should be.

    client.py ERA PIPE ANNALS mcp [ARGUMENT...]
    client.py ERA PIPE ANNALS URL TOKEN

ERA is `2025-11-25`, which begins with a handshake, or `2026-07-28`, which does without. PIPE is where the agent `slow`
waits until somebody has written to it and closed it. The rest is the server: the program, which is started with these
arguments, or where it is reached over HTTP. Its store holds the chats `cli:default`, for which we speak, and `telegram:42`;
the agent `main` answers "done" to everything.
"""

import json
import logging
import os
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, ResourcesListChanged, ResourceUpdated

TOOLS = [
    "sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn",
    "session_status", "agents_list", "runs_wait", "runs_cancel",
]
CHAT = "session://telegram%3A42"

# Nothing waits so long where all is well.
AT_MOST = 120


def same(have, want):
    assert have == want, f"{have!r} is not {want!r}"


async def call(client, tool, **arguments):
    """What a tool answers, which is the same as text and as a value."""
    result = await client.call_tool(tool, arguments)
    text = json.loads(result.content[0].text)
    same((len(result.content), result.structured_content), (1, text))
    assert not result.is_error, text
    return text


async def wrong(client, tool, arguments, code, words):
    """A call that a tool refuses: not an error of the protocol, and it says what would have been right."""
    result = await client.call_tool(tool, arguments)
    error = result.structured_content["error"]
    assert result.is_error, error
    same(error["code"], code)
    told = f"{error['message']} {error.get('hint')}"
    assert words in told, f"{words!r} is not in {told!r}"


async def refused(code, awaited):
    """An error of the protocol."""
    try:
        answer = await awaited
    except MCPError as error:
        same(error.code, code)
        return error
    raise AssertionError(f"not refused: {answer!r}")


async def push(annals, channel, chat, text):
    """Another program says something in a chat."""
    await anyio.run_process([annals, "session", "push", channel, chat, "user", text])


async def hello(client, era):
    same(client.protocol_version, era)
    same(client.server_info.name, "annals")
    assert client.server_info.version and "no failure" in client.instructions
    can = client.server_capabilities
    assert can.tools and can.resources.subscribe and can.resources.list_changed
    same((can.prompts, can.completions), (None, None))


async def tools(client):
    listed = await client.list_tools()
    same(([tool.name for tool in listed.tools], listed.next_cursor), (TOOLS, None))
    for tool in listed.tools:
        assert tool.description and tool.input_schema["type"] == "object", tool
    again = await client.list_tools(cache_mode="bypass")
    same(again.tools, listed.tools)


async def reading(client):
    rows = await call(client, "sessions_list", messageLimit=1)
    same((rows["total"], rows["truncated"]), (2, False))
    same({row["key"] for row in rows["sessions"]}, {"cli:default", "telegram:42"})
    page = await call(client, "sessions_list", limit=1)
    rest = await call(client, "sessions_list", limit=1, cursor=page["cursor"])
    same(len(page["sessions"] + rest["sessions"]), 2)
    said = await call(client, "sessions_history", sessionKey="telegram:42", includeTools=True)
    same([message["content"] for message in said["messages"]], ["secret plans"])
    found = await call(client, "sessions_search", query="PLANS")
    same([hit["key"] for hit in found["results"]], ["telegram:42"])
    agents = await call(client, "agents_list")
    same([agent["id"] for agent in agents["agents"]], ["main", "slow"])
    status = await call(client, "session_status")
    same((status["session"]["key"], status["openRuns"]), ("cli:default", []))
    return status["cursor"]


async def working(client, pipe, cursor):
    sent = await call(client, "sessions_send", sessionKey="telegram:42", message="go", timeoutSeconds=AT_MOST)
    same((sent["status"], sent["reply"]), ("ok", "done"))
    waited = await call(client, "runs_wait", runIds=[sent["runId"]], timeoutSeconds=60)
    same([run["status"] for run in waited["runs"]], ["ok"])
    shown = await client.read_resource(f"run://{sent['runId']}")
    same(json.loads(shown.contents[0].text), waited["runs"][0])

    child = await call(client, "sessions_spawn", task="count", label="counter")
    same(child["status"], "accepted")
    waited = await call(client, "runs_wait", runIds=[child["runId"]], timeoutSeconds=60)
    same((waited["runs"][0]["status"], waited["runs"][0]["reply"]), ("ok", "done"))
    status = await call(client, "session_status", sessionKey=child["childSessionKey"])
    same(status["session"]["label"], "counter")

    status = await call(client, "session_status", changesSince=cursor)
    assert {"send.accepted", "spawn.accepted"} <= {change["type"] for change in status["changes"]}, status

    slow = await call(client, "sessions_spawn", task="wait", agentId="slow")
    await given_up(client, pipe, slow["runId"])
    ended = await call(client, "runs_cancel", runId=slow["runId"])
    assert ended["status"] in ("killed", "kill_requested"), ended
    waited = await call(client, "runs_wait", runIds=[slow["runId"]], timeoutSeconds=60)
    same(waited["runs"][0]["status"], "killed")


async def given_up(client, pipe, run):
    """A call that waits tells that it goes on, and is given up; what it waited for goes on."""
    told = anyio.Event()

    async def progress(seconds, total, message):
        assert seconds >= 0 and total is None and message.startswith("waiting for "), message
        told.set()

    agent = await anyio.to_thread.run_sync(open, pipe, "w")
    async with anyio.create_task_group() as group:
        waits = {"runIds": [run], "timeoutSeconds": 60}
        group.start_soon(lambda: client.call_tool("runs_wait", waits, progress_callback=progress))
        await told.wait()
        group.cancel_scope.cancel()
    waited = await call(client, "runs_wait", runIds=[run], timeoutSeconds=0)
    same(waited["runs"][0]["status"], "running")
    # The agent goes when its run is cancelled, whether or not its pipe was closed.
    client.agent = agent


async def wrong_calls(client):
    await wrong(client, "sessions_list", {"limit": "x"}, "invalid_input", '"maximum":200')
    await wrong(client, "sessions_list", {"kinds": ["boat"]}, "invalid_input", "main, group, cron")
    await wrong(client, "sessions_list", {"nonsense": 1}, "invalid_input", "activeMinutes")
    await wrong(client, "sessions_history", {}, "invalid_input", "sessionKey (must be there)")
    await wrong(client, "sessions_history", {"sessionKey": "cli:gone"}, "not_found", "cli:gone")
    await wrong(client, "sessions_search", {"query": "x", "role": "bard"}, "invalid_input", "assistant")
    await wrong(client, "sessions_send", {"sessionKey": "cli:gone", "message": "x"}, "not_found", "cli:gone")
    await wrong(client, "sessions_send", {"message": "x"}, "invalid_input", "sessionKey")
    await wrong(client, "sessions_spawn", {"task": 7}, "invalid_input", "task is")
    burnt = await client.call_tool("sessions_spawn", {"task": "x", "cleanup": "burn"})
    same((burnt.is_error, burnt.structured_content["status"]), (True, "error"))
    assert "delete, keep" in burnt.structured_content["error"], burnt
    await wrong(client, "session_status", {"sessionKey": "cli:gone"}, "not_found", "cli:gone")
    await wrong(client, "session_status", {"changesSince": "x"}, "invalid_input", "earlier answer")
    await wrong(client, "agents_list", {"all": True}, "invalid_input", "it takes none")
    await wrong(client, "runs_wait", {"runIds": []}, "invalid_input", "1 to 32")
    await wrong(client, "runs_cancel", {"runId": "x"}, "not_found", '"x"')
    error = await refused(-32602, client.call_tool("sessions_sing", {}))
    assert "sessions_list, sessions_history" in error.message, error
    await refused(-32602, client.list_tools(cursor="x"))


async def resources(client):
    listed = await client.list_resources()
    uris = [resource.uri for resource in listed.resources]
    assert CHAT in uris and "session://cli%3Adefault" in uris, uris
    shown = await client.read_resource(CHAT)
    [content] = shown.contents
    same((content.uri, content.mime_type), (CHAT, "application/json"))
    same(json.loads(content.text), await call(client, "sessions_history", sessionKey="telegram:42"))
    templates = await client.list_resource_templates()
    same([one.uri_template for one in templates.resource_templates], ["session://{key}", "run://{id}"])
    for uri in ["session://cli%3Agone", "run://gone", "file:///etc/passwd"]:
        await refused(NOT_FOUND[client.protocol_version], client.read_resource(uri))
    return len(uris)


# What names no resource, in each era.
NOT_FOUND = {"2025-11-25": -32002, "2026-07-28": -32602}


async def updates_by_subscription(client, heard, annals):
    await client.subscribe_resource(CHAT)
    await push(annals, "telegram", "42", "one")
    assert await heard("notifications/resources/updated") == CHAT
    await client.unsubscribe_resource(CHAT)
    await push(annals, "matrix", "new", "two")
    await heard("notifications/resources/list_changed")
    await refused(-32002, client.subscribe_resource("session://cli%3Agone"))
    try:
        async with client.listen(resources_list_changed=True):
            raise AssertionError("a listener in the old era")
    except ListenNotSupportedError:
        pass


async def updates_by_listening(client, annals):
    async with client.listen(resource_subscriptions=[CHAT], resources_list_changed=True) as news:
        same(news.honored.resource_subscriptions, [CHAT])
        await push(annals, "telegram", "42", "one")
        same(await anext(news), ResourceUpdated(uri=CHAT))
        await push(annals, "matrix", "new", "two")
        same(await anext(news), ResourcesListChanged())


class Complaints(logging.Handler):
    """What the SDK complains of while it is connected. How it lets go of a connection is its own business."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(self.format(record))

    def none(self):
        logging.disable()
        same(self.said, [])


@asynccontextmanager
async def reached(annals, arguments):
    """What the client is made with: a program to start, or a way over HTTP."""
    if arguments[0] == "mcp":
        yield StdioServerParameters(command=annals, args=list(arguments), env=dict(os.environ))
        return
    url, token = arguments
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=AT_MOST) as way:
        yield streamable_http_client(url, http_client=way)


async def main(era, pipe, annals, *arguments):
    send, receive = anyio.create_memory_object_stream(1_000)

    async def handler(message):
        await send.send(message)

    async def heard(method):
        """What the next notification of a method is about."""
        async for message in receive:
            if getattr(message, "method", None) == method:
                return getattr(message.params, "uri", None)

    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    mode = "legacy" if era < "2026" else "auto"
    with anyio.fail_after(AT_MOST):
        async with reached(annals, arguments) as server, Client(server, mode=mode, message_handler=handler, cache=None) as client:
            await hello(client, era)
            await tools(client)
            cursor = await reading(client)
            await wrong_calls(client)
            count = await resources(client)
            if mode == "legacy":
                await client.send_ping()
                await updates_by_subscription(client, heard, annals)
            else:
                await updates_by_listening(client, annals)
            same(await resources(client), count + 1)
            await working(client, pipe, cursor)
            complaints.none()
    print("all well")


anyio.run(main, *sys.argv[1:])
