"""A server whose lists are what a file says, read anew whenever it changed: a rug pull by hand.

    python3 changing.py FILE

FILE is a JSON object with `tools`, `prompts`, `resources`, `resourceTemplates` and `instructions`, and with the `results` of tools by name. Speaks the revisions
with sessions over standard input and output, and tells when the lists changed.
"""

import json
import os
import sys
import threading
import time

FILE = sys.argv[1]
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
out = threading.Lock()


def read():
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def send(message):
    with out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def watch():
    seen = os.stat(FILE).st_mtime_ns
    while True:
        time.sleep(0.02)
        now = os.stat(FILE).st_mtime_ns
        if now != seen:
            seen = now
            for kind in ("tools", "prompts", "resources"):
                send({"method": f"notifications/{kind}/list_changed"})


def answer(method, params):
    if method == "initialize":
        told = {"listChanged": True}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": told, "prompts": told, "resources": told},
            "serverInfo": {"name": "changing", "version": "1"},
            "instructions": read().get("instructions", ""),
        }
    if method in LISTS:
        return {LISTS[method]: read().get(LISTS[method], [])}
    if method == "tools/call" and params["name"] in read().get("results", {}):
        return read()["results"][params["name"]]
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "did " + params["name"]}]}
    if method == "prompts/get":
        text = {"type": "text", "text": "say " + params["name"]}
        return {"messages": [{"role": "user", "content": text}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "it"}]}
    return {}


threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params", {}))
        send({"id": message["id"], "result": result})
