"""The bare loop that `pawl ask` is held against: httpx2, one request a turn, the file read, nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import httpx2

TOOL = {
    "type": "function",
    "function": {
        "name": "file_read",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def main() -> None:
    url, folder = f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions", Path(sys.argv[2])
    messages = [{"role": "system", "content": "Answer from the files."}, {"role": "user", "content": "what is there?"}]
    with httpx2.Client(timeout=60, trust_env=False) as client:
        while True:
            body = {"model": "m", "messages": messages, "tools": [TOOL], "stream": True}
            calls, text = [], ""
            with client.stream("POST", url, json=body) as answer:
                for line in answer.iter_lines():
                    if not line.startswith("data: {"):
                        continue
                    for choice in json.loads(line[6:])["choices"]:
                        calls += choice["delta"].get("tool_calls") or []
                        text += choice["delta"].get("content") or ""
            if not calls:
                return
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            for call in calls:
                path = json.loads(call["function"]["arguments"])["path"]
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": (folder / path).read_text()})


if __name__ == "__main__":
    main()
