"""A client of the Python `mcp` package: its first word is not used, the others are those of `src/job.rs`, and `--server PROGRAM`."""

import sys
import time

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def word(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def target():
    if url := word("--url"):
        return streamable_http_client(url)
    core = ["--core", word("--core")] if word("--core") else []
    return StdioServerParameters(command=word("--server"), args=["--breaking", *core])


async def work(client, ids):
    for number in ids:
        text = f"{number:08} ......."
        result = await client.call_tool("echo", {"text": text})
        if result.content[0].text != text:
            raise SystemExit(f"not {text}: {result.content[0].text}")


async def main():
    ids = iter(range(1, int(word("--calls")) + 1))
    async with Client(target(), mode="2026-07-28") as client:
        begin = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(int(word("--flight"))):
                group.start_soon(work, client, ids)
        took = time.perf_counter() - begin
    print(took)


anyio.run(main)
