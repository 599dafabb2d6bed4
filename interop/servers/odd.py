"""A server over stdio that writes odd messages byte for byte, as the corpus in `interop/odd` has them.

Its argument is JSON: {"corpus": FILE, "case": NAME, "revision": REVISION}. It offers every case of the file, or the named
one alone. Only the standard library is used, because an SDK would mend or refuse what the corpus is about.

A case of a file with one server for all cases has some of these members:
  tool, tool_raw            the definition of a tool; the name is added where it lacks one; raw text is sent unchanged
  resource, template, prompt  a definition of that kind
  result, result_raw        the result of its call; without one the server answers "ran" and the arguments
  reply_raw                 the whole answer, of which $ID becomes the id of the request; with hex:, raw bytes
  many                      what $MANY becomes: a text so many times, in which # is the number
A case with a server of its own has `answers`: a result (or raw text of a whole answer) for each method.
"""

import json
import sys

SETTING = json.loads(sys.argv[1])
REVISION = SETTING["revision"]
MODERN = REVISION >= "2026"
LISTS = {
    "tools/list": ("tool", "tools"),
    "resources/list": ("resource", "resources"),
    "resources/templates/list": ("template", "resourceTemplates"),
    "prompts/list": ("prompt", "prompts"),
}


def cases():
    with open(SETTING["corpus"], encoding="utf-8") as file:
        read = [json.loads(line) for line in file if line.strip()]
    if "case" in SETTING:
        return [case for case in read if case["case"] == SETTING["case"]]
    return [case for case in read if case.get("revision", "2025-11-25") == REVISION]


CASES = cases()
OWN = CASES[0].get("answers", {}) if "case" in SETTING else {}


def send(data):
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def reply(request, result):
    envelope = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}'
    send(envelope.encode("utf-8", "surrogatepass"))


def raw_reply(request, text, many=None):
    if many:
        text = text.replace("$MANY", ",".join(many["text"].replace("#", str(n)) for n in range(many["times"])))
    text = text.replace("$ID", json.dumps(request["id"]))
    data = bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode("utf-8")
    if text.startswith("hex:"):
        data = data.replace(b"$ID", json.dumps(request["id"]).encode())
    send(data)


def wrapped(result, is_list=False):
    """The members that a result of 2026-07-28 has besides."""
    if not MODERN:
        return result
    extra = {"resultType": "complete"}
    if is_list:
        extra |= {"ttlMs": 60000, "cacheScope": "private"}
    return extra | result


def definition(case, kind):
    if f"{kind}_raw" in case:
        return case[f"{kind}_raw"]
    value = dict(case[kind])
    value.setdefault("name", case["case"])
    return json.dumps(value)


def listing(method):
    kind, member = LISTS[method]
    items = [definition(case, kind) for case in CASES if kind in case or f"{kind}_raw" in case]
    head = json.dumps(wrapped({}, is_list=True))[:-1]
    comma = ", " if len(head) > 1 else ""
    return f'{head}{comma}"{member}": [{", ".join(items)}]}}'


def named(name):
    """The case whose tool, resource or prompt has this name or URI."""
    for case in CASES:
        for kind in ("tool", "prompt", "resource"):
            item = case.get(kind, {})
            if name in (item.get("uri"), item.get("name", case["case"])):
                return case
    return next((case for case in CASES if case["case"] == name), {})


def opening(method, params):
    capabilities = {"tools": {}, "resources": {}, "prompts": {}}
    if method == "initialize":
        return {"protocolVersion": REVISION, "capabilities": capabilities, "serverInfo": {"name": "odd", "version": "1"}}
    return {
        "resultType": "complete", "ttlMs": 60000, "cacheScope": "private",
        "supportedVersions": [REVISION], "capabilities": capabilities,
    }


def use(method, request):
    params = request.get("params") or {}
    case = named(params.get("name", params.get("uri")))
    if "reply_raw" in case:
        return raw_reply(request, case["reply_raw"], case.get("many"))
    if "result_raw" in case:
        return reply(request, case["result_raw"])
    if "result" in case:
        return reply(request, json.dumps(wrapped(case["result"])))
    if method == "resources/read":
        contents = [{"uri": params["uri"], "text": "read"}]
        return reply(request, json.dumps(wrapped({"contents": contents}, is_list=True)))
    if method == "prompts/get":
        message = {"role": "user", "content": {"type": "text", "text": "prompted"}}
        return reply(request, json.dumps(wrapped({"messages": [message]})))
    arguments = json.dumps(params.get("arguments"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    ran = "ran " + arguments
    return reply(request, json.dumps(wrapped({"content": [{"type": "text", "text": ran}]})))


def answer(request):
    method = request["method"]
    if method in OWN:
        own = OWN[method]
        return raw_reply(request, own) if isinstance(own, str) else reply(request, json.dumps(own))
    if method == ("server/discover" if MODERN else "initialize"):
        return reply(request, json.dumps(opening(method, request)))
    if method in LISTS:
        return reply(request, listing(method))
    if method in ("tools/call", "resources/read", "prompts/get"):
        return use(method, request)
    if method == "ping":
        return reply(request, "{}")
    raw_reply(request, '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no such method"}}')


for banner in OWN.get("banner", []):
    send(banner.encode("utf-8"))
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer(message)
