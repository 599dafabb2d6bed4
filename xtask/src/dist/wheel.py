"""Writes a wheel that holds one program: VERSION TAG FILES README OUTPUT. Equal input gives equal bytes."""

import base64
import hashlib
import os
import sys
import time
import zipfile

version, tag, files, readme, output = sys.argv[1:]
python, abi, platforms = tag.split("-")
info = f"toolgate-{version}.dist-info"

with open(readme, encoding="utf-8") as file:
    readme = file.read()
metadata = f"""\
Metadata-Version: 2.4
Name: toolgate
Version: {version}
Summary: MCP gateway with policy, approvals and an audit log
License-Expression: Apache-2.0
License-File: LICENSE
Project-URL: Repository, https://example.com/toolgate
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""
tags = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
wheel = f"Wheel-Version: 1.0\nGenerator: cargo-xtask-dist\nRoot-Is-Purelib: false\n{tags}"


def content(name):
    with open(f"{files}/{name}", "rb") as file:
        return file.read()


entries = [
    (f"toolgate-{version}.data/scripts/toolgate", content("toolgate"), 0o755),
    (f"{info}/METADATA", metadata.encode(), 0o644),
    (f"{info}/WHEEL", wheel.encode(), 0o644),
    (f"{info}/licenses/LICENSE", content("LICENSE"), 0o644),
]
record = ""
for name, data, _ in entries:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
entries.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))

when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
path = f"{output}/toolgate-{version}-{tag}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, data, mode in entries:
        entry = zipfile.ZipInfo(name, when)
        entry.create_system = 3  # Unix, so that the mode counts
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
