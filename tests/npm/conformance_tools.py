"""The tools that the conformance set calls, behind Pawl's server in the place of its commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pawl.agent.mcp_server import ServedCall, ToolServer, failure

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
MESSAGE = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
DIALECT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
TEXT = {"type": "text", "text": "This is a simple text response for testing."}
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
CONTENT: Mapping[str, list[dict[str, Any]]] = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ],
    "test_multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        },
    ],
}
INPUTS = {
    **dict.fromkeys([*CONTENT, "test_error_handling", "test_tool_with_progress"], NOTHING),
    "test_elicitation": MESSAGE,
    "json_schema_2020_12_tool": DIALECT,
}


def called(call: ServedCall) -> Mapping[str, Any]:
    if call.tool == "test_error_handling":
        return failure("This tool intentionally returns an error for testing")
    if call.tool == "test_tool_with_progress":
        for done in (0, 50, 100):
            call.progress(done, f"{done} of 100")
    if call.tool == "test_elicitation":
        said = call.ask(call.arguments["message"])
        return {"content": [{"type": "text", "text": f"User response: {said}"}]}
    return {"content": CONTENT.get(call.tool, [TEXT])}


if __name__ == "__main__":
    tools = [{"name": name, "description": name, "inputSchema": schema} for name, schema in INPUTS.items()]
    ToolServer(tools, called, sys.stdout.buffer).serve(sys.stdin.buffer)
