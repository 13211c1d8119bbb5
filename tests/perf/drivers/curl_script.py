"""The least that a request can cost: libcurl, every prompt sent and its reply received, nothing read or written."""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO
from pathlib import Path

import pycurl

SCHEMA = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": ["CHAT", "HANDOFF"]}},
    "required": ["category"],
    "additionalProperties": False,
}


def main(prompts: list[str]) -> None:
    """Ask every prompt, as many at a time as `CONCURRENCY` says."""
    multi = pycurl.CurlMulti()
    idle = [pycurl.Curl() for _ in range(int(os.environ["CONCURRENCY"]))]
    for handle in idle:
        handle.setopt(pycurl.URL, f"{os.environ['BASE_URL']}/chat/completions")
        handle.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", "Authorization: Bearer mock"])
    left, running = iter(prompts), 0
    while True:
        while idle and (prompt := next(left, None)) is not None:
            handle = idle.pop()
            handle.setopt(pycurl.POSTFIELDS, _body(prompt))
            handle.setopt(pycurl.WRITEDATA, BytesIO())
            multi.add_handle(handle)
            running += 1
        if not running:
            return
        multi.select(1.0)
        multi.perform()
        _, ended, broken = multi.info_read()
        if broken:
            sys.exit(f"a request failed: {broken[0][2]}")
        for handle in ended:
            multi.remove_handle(handle)
            idle.append(handle)
            running -= 1


def _body(prompt: str) -> str:
    schema = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}
    message = {"role": "user", "content": prompt}
    return json.dumps({"model": "mock-1", "messages": [message], "response_format": schema})


if __name__ == "__main__":
    lines = Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()
    main([json.loads(line)["prompt"] for line in lines])
