#!/usr/bin/env python3
"""Measures what one gateway needs: disk per call, and memory per session, stream, connection and server.

Usage: bench/sizing.py PROGRAM
"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIMITS = """[limits]
rate = "1000000/s"
sessions = 4000
listen_streams = 4000
listen_streams_per_caller = 4000
connections = 8000
connections_per_address = 8000
"""


class Gateway:
    """A gateway with demo servers, on a data directory of its own."""

    def __init__(self, program, servers):
        self.folder = tempfile.TemporaryDirectory()
        config = os.path.join(self.folder.name, "toolgate.toml")
        self.data = os.path.join(self.folder.name, "data")
        with open(config, "w", encoding="utf-8") as file:
            file.write(LIMITS)
            for number in range(servers):
                file.write(f'[server.d{number}]\ncommand = ["{program}", "demo-server"]\ntrust_annotations = true\n')
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data", self.data, "--config", config]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("MCP endpoint"):
                self.port = int(line.split(":")[2].split("/")[0])
                break
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()
        self.client = http.client.HTTPConnection("127.0.0.1", self.port)

    def post(self, message, headers):
        self.client.request("POST", "/mcp", json.dumps(message), {**HEADERS, **headers})
        response = self.client.getresponse()
        text = response.read()
        if response.status not in (200, 202) or b'"error"' in text:
            sys.exit(f"the gateway answered {response.status}: {text}")
        return response

    def call(self, tool):
        """Calls a tool of 2026-07-28."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "sizing", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": {"a": 1, "b": 2}, "_meta": meta}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
        self.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers)

    def open_session(self):
        """Opens a session of 2025-11-25; returns its id."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "sizing", "version": "1"}}
        opened = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, {})
        session = opened.getheader("mcp-session-id")
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
        return session

    def get(self, path, lines):
        """Sends a GET request and keeps its connection open."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        head = "".join(f"{line}\r\n" for line in [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *lines])
        connection.sendall(f"{head}\r\n".encode())
        connection.recv(1024)
        return connection

    def memory(self):
        """Returns the resident memory in KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def log_bytes(self):
        """Returns the size of the audit log."""
        files = [os.path.join(top, name) for top, _, names in os.walk(f"{self.data}/audit") for name in names]
        return sum(map(os.path.getsize, files))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def main():
    program = os.path.abspath(sys.argv[1])
    gateway = Gateway(program, 1)
    for _ in range(200):
        gateway.call("d0_add")
    before, calls = gateway.log_bytes(), 2000
    for _ in range(calls):
        gateway.call("d0_add")
    print(f"audit log, bytes per call: {(gateway.log_bytes() - before) / calls:.0f}")
    memory = [gateway.memory()]
    sessions = [gateway.open_session() for _ in range(1000)]
    memory.append(gateway.memory())
    lines = ["Accept: text/event-stream", "MCP-Protocol-Version: 2025-11-25"]
    held = [gateway.get("/mcp", [*lines, f"Mcp-Session-Id: {session}"]) for session in sessions[:500]]
    memory.append(gateway.memory())
    held += [gateway.get("/nothing", []) for _ in range(500)]
    memory.append(gateway.memory())
    print(f"memory, KiB: {memory[0]} with one server and no sessions")
    print(f"memory, KiB per idle session: {(memory[1] - memory[0]) / 1000:.1f}")
    print(f"memory, KiB per open stream with its connection: {(memory[2] - memory[1]) / 500:.1f}")
    print(f"memory, KiB per idle connection: {(memory[3] - memory[2]) / 500:.1f}")
    gateway.stop()
    used = []
    for servers in (1, 9):
        gateway = Gateway(program, servers)
        for number in range(servers):
            gateway.call(f"d{number}_add")
        time.sleep(1)
        used.append(gateway.memory())
        gateway.stop()
    print(f"memory, KiB of the gateway per server: {(used[1] - used[0]) / 8:.0f}")


if __name__ == "__main__":
    main()
