"""The Python `mcp` client: the same jobs and the same lines as `job.mjs` describes."""

import json
import os
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

JOB = json.loads(sys.argv[1])


def say(event, **more):
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


class Answers:
    """Answers one question after the other; the last answer repeats."""

    def __init__(self, answers):
        self.answers, self.asked = answers, 0

    async def __call__(self, context, params):
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        schema = params.model_dump(by_alias=True, mode="json").get("requestedSchema") or {}
        fields = list(schema.get("properties", {}))
        say("asked", message=params.message, fields=fields)
        if answer["action"] != "accept":
            return types.ElicitResult(action=answer["action"])
        content = {k: v for k, v in answer.get("content", {}).items() if k in fields}
        return types.ElicitResult(action="accept", content=content)


def target():
    if "http" in JOB:
        headers = JOB.get("headers")
        if JOB.get("mode") == "sse":
            return sse_client(JOB["http"], headers=headers)
        return streamable_http_client(JOB["http"], http_client=create_mcp_http_client(headers=headers))
    command, *args = JOB["stdio"]
    return StdioServerParameters(command=command, args=args, env={**os.environ, **JOB.get("env", {})})


def say_result(result):
    say(
        "result",
        is_error=bool(result.is_error),
        text="\n".join(c.text for c in result.content if c.type == "text"),
        kinds=[c.type for c in result.content],
        structured=result.structured_content,
    )


async def call(client, step):
    seen = 0
    with anyio.CancelScope() as scope:

        async def on_progress(progress, total, message):
            nonlocal seen
            say("progress", progress=progress, total=total, message=message)
            seen += 1
            if seen == step.get("leave_after"):
                os._exit(0)
            if seen == step.get("cancel_after"):
                scope.cancel()

        timeout = step.get("timeout_ms", 60_000) / 1000
        result = await client.call_tool(step["name"], step.get("arguments", {}), timeout, on_progress)
        say_result(result)
    if scope.cancelled_caught:
        say("cancelled")


WAYS = {
    "resources/list": lambda client, params: client.list_resources(),
    "resources/templates/list": lambda client, params: client.list_resource_templates(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
    "prompts/list": lambda client, params: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params.get("arguments")),
}


async def one(client, step, changes):
    if step["do"] == "list":
        tools = (await client.list_tools()).tools
        whole = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]
        say("tools", names=[tool.name for tool in tools], tools=whole)
    elif step["do"] == "changed":
        await changes.heard.wait()
        say("changed")
    elif step["do"] == "ask":
        result = await WAYS[step["method"]](client, step["params"])
        say("answer", result=result.model_dump(by_alias=True, mode="json", exclude_none=True))
    elif step["do"] == "wait":
        say("waiting")
        await anyio.to_thread.run_sync(sys.stdin.readline)
    else:
        await call(client, step)


class Changes:
    """Whether the server told that its list of tools changed."""

    def __init__(self):
        self.heard = anyio.Event()

    async def heed(self, message):
        """A session tells it by itself."""
        if isinstance(message, types.ToolListChangedNotification):
            self.heard.set()

    async def listen(self, client, *, task_status):
        """Since 2026-07-28 there is a stream for it."""
        async with client.listen(tools_list_changed=True) as events:
            task_status.started()
            async for _ in events:
                self.heard.set()


async def main():
    elicit = JOB.get("elicit")
    mode = "legacy" if JOB.get("mode") in ("legacy", "sse") else JOB.get("mode_word", "auto")
    callback = Answers(elicit) if elicit else None
    changes = Changes()
    options = {
        "mode": mode,
        "elicitation_callback": callback,
        "client_info": types.Implementation(name="interop-py", version="1.0.0"),
        "message_handler": changes.heed,
    }
    async with Client(target(), **options) as client:
        server = client.server_info.model_dump(mode="json") if client.server_info else None
        say("connected", revision=client.protocol_version, server=server)
        async with anyio.create_task_group() as group:
            if {"do": "changed"} in JOB["steps"] and client.protocol_version >= "2026":
                await group.start(changes.listen, client)
            await steps(client, changes)
            group.cancel_scope.cancel()
    say("done")


async def steps(client, changes):
    for step in JOB["steps"]:
        try:
            await one(client, step, changes)
        except MCPError as error:
            say("error", code=error.code, message=error.message)
        except Exception as error:  # what the SDK cannot read ends its step only
            say("error", code=None, message=f"{type(error).__name__}: {error}")


anyio.run(main)
