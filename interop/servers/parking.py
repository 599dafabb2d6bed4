"""A server of 2025-11-25 over stdio that asks in the middle of a call, by a request of its own, and waits for the answer.
It asks what its first argument, a file, has: a method and its parameters, read anew for each call. What it is told, an
answer or that its call is cancelled, it appends to the second, a file of lines."""

import json
import sys

QUESTION, TOLD = sys.argv[1], sys.argv[2]
TOOLS = [{"name": "look", "inputSchema": {"type": "object"}}]
waiting, asked = {}, 0


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tell(what):
    with open(TOLD, "a") as file:
        file.write(json.dumps(what) + "\n")


for line in sys.stdin:
    message = json.loads(line)
    method, key = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "parking", "version": "1"}
        offer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        say({"id": key, "result": offer})
    elif method == "tools/list":
        say({"id": key, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        asked += 1
        waiting[f"q{asked}"] = key
        with open(QUESTION) as file:
            say({"id": f"q{asked}", **json.load(file)})
    elif method == "notifications/cancelled":
        tell("cancelled")
    elif method is None:
        told = message["result"] if "result" in message else {"error": message["error"]["message"]}
        tell(told)
        content = [{"type": "text", "text": json.dumps(told)}]
        say({"id": waiting.pop(key), "result": {"content": content}})
    elif key is not None:
        say({"id": key, "error": {"code": -32601, "message": "method not found"}})
