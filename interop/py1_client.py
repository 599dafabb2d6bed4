"""The Python `mcp` 1.x client: the same jobs and the same lines as `job.mjs` describes."""

import json
import os
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

JOB = json.loads(sys.argv[1])


def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


@asynccontextmanager
async def streams():
    if "http" in JOB:
        async with streamablehttp_client(JOB["http"], headers=JOB.get("headers")) as (read, write, _):
            yield read, write
        return
    command, *args = JOB["stdio"]
    server = StdioServerParameters(command=command, args=args, env={**os.environ, **JOB.get("env", {})})
    async with stdio_client(server) as (read, write):
        yield read, write


class Peer:
    """What the server may ask of us, and what it tells."""

    def __init__(self):
        self.asked, self.changed = 0, anyio.Event()

    async def answer(self, _context, params):
        answers = JOB["elicit"]
        answer = answers[min(self.asked, len(answers) - 1)]
        self.asked += 1
        say("asked", message=params.message, fields=list(params.requestedSchema.get("properties", {})))
        return types.ElicitResult(**answer)

    async def heed(self, message):
        if isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ToolListChangedNotification
        ):
            self.changed.set()


async def call(session, step):
    seen, scope = 0, anyio.CancelScope()
    # Cancelling is left to the caller in 1.x, and so is knowing the id.
    number = session._request_id

    async def on_progress(progress, total, message):
        nonlocal seen
        say("progress", progress=progress, total=total, message=message)
        seen += 1
        if seen == step.get("cancel_after"):
            params = types.CancelledNotificationParams(requestId=number, reason="the user changed their mind")
            note = types.CancelledNotification(method="notifications/cancelled", params=params)
            await session.send_notification(types.ClientNotification(note))
            scope.cancel()

    with scope:
        limit = timedelta(milliseconds=step.get("timeout_ms", 60_000))
        result = await session.call_tool(step["name"], step.get("arguments", {}), limit, on_progress)
        texts = [c.text for c in result.content if c.type == "text"]
        say("result", is_error=bool(result.isError), text="\n".join(texts), structured=result.structuredContent)
    if scope.cancelled_caught:
        say("cancelled")


WAYS = {
    "resources/list": lambda session, params: session.list_resources(),
    "resources/templates/list": lambda session, params: session.list_resource_templates(),
    "resources/read": lambda session, params: session.read_resource(params["uri"]),
    "prompts/list": lambda session, params: session.list_prompts(),
    "prompts/get": lambda session, params: session.get_prompt(params["name"], params.get("arguments")),
}


async def one(session, step, peer):
    if step["do"] == "list":
        tools = (await session.list_tools()).tools
        whole = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]
        say("tools", names=[tool.name for tool in tools], tools=whole)
    elif step["do"] == "changed":
        await peer.changed.wait()
        say("changed")
    elif step["do"] == "ask":
        result = await WAYS[step["method"]](session, step["params"])
        say("answer", result=result.model_dump(by_alias=True, mode="json", exclude_none=True))
    elif step["do"] == "wait":
        say("waiting")
        await anyio.to_thread.run_sync(sys.stdin.readline)
    else:
        await call(session, step)


async def main():
    peer = Peer()
    options = {
        "elicitation_callback": peer.answer if JOB.get("elicit") else None,
        "message_handler": peer.heed,
        "client_info": types.Implementation(name="interop-py1", version="1.0.0"),
    }
    async with streams() as (read, write), ClientSession(read, write, **options) as session:
        opened = await session.initialize()
        say("connected", revision=opened.protocolVersion, server=opened.serverInfo.model_dump(mode="json"))
        for step in JOB["steps"]:
            try:
                await one(session, step, peer)
            except McpError as error:
                say("error", code=error.error.code, message=error.error.message)
            except Exception as error:  # what the SDK cannot read ends its step only
                say("error", code=None, message=f"{type(error).__name__}: {error}")
    say("done")


anyio.run(main)
