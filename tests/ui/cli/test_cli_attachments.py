"""Pictures and PDFs: sent to models that read them, in the form of each wire, and only named to the others."""

from __future__ import annotations

import base64
import json

import pytest
from models.provider_socket import provider, whole
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_ask import server
from ui.cli.test_cli_one_gate import Configured, configured

__all__ = ["configured"]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n%%EOF\n"
CAN = '[models."here/*"]\nimages = true\ndocuments = true\n'
DATA = {name: base64.b64encode(data).decode() for name, data in (("png", PNG), ("pdf", PDF))}
SHAPES = {
    "openai": (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA['png']}"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA['pdf']}"}},
    ),
    "anthropic": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA["png"]}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA["pdf"]}},
    ),
    "gemini": (
        {"inlineData": {"mimeType": "image/png", "data": DATA["png"]}},
        {"inlineData": {"mimeType": "application/pdf", "data": DATA["pdf"]}},
    ),
}


def laid(project: Project):
    pawl = project({**SETTINGS, "app.py": "x = 1\n", ".env": "KEY=1\n"})
    (pawl.workspace / "shot").write_bytes(PNG)
    (pawl.workspace / "a.pdf").write_bytes(PDF)
    return pawl


@pytest.mark.spec("F4")
@pytest.mark.parametrize("wire", SHAPES)
def test_a_picture_and_a_pdf_go_with_the_words_in_the_form_of_the_wire(
    project: Project, configured: Configured, wire: str
):
    pawl = laid(project)
    with provider([whole(b"{}", status="400 Bad Request")]) as playing:
        configured(server(playing.port, wire) + CAN)
        pawl("ask", "what is on @shot and in @a.pdf, beside @app.py?")
    body = json.loads(playing.requests[0].body)
    turns = body["contents"] if wire == "gemini" else body["messages"]
    parts = [
        part for turn in turns for part in (turn.get("parts") or turn.get("content") or ()) if isinstance(part, dict)
    ]
    for shape in SHAPES[wire]:
        assert shape in parts
    assert str(body).count(DATA["png"]) == 1


@pytest.mark.spec("F4")
def test_a_model_that_reads_no_pictures_is_only_told_the_name_and_the_user_why(
    project: Project, configured: Configured
):
    pawl = laid(project)
    (pawl.workspace / "large.png").write_bytes(PNG + b"\0" * (6 << 20))
    with provider([whole(b"{}", status="400 Bad Request")]) as playing:
        configured(server(playing.port))
        said = pawl("ask", "what is on @shot?")
        assert "shot is not sent: the model is not known to read pictures" in said.err
        assert DATA["png"] not in playing.requests[0].body.decode()
    with provider([whole(b"{}", status="400 Bad Request")]) as playing:
        configured(server(playing.port) + CAN)
        said = pawl("ask", "what is on @large.png and in @.env, @gone.py:3-5, @property and @types/node?")
        assert "large.png is not sent: " in said.err and ".env is not attached: '.env' holds secrets" in said.err
        assert "gone.py is not attached: there is no file 'gone.py'" in said.err and said.err.count("not attached") == 2
        assert "KEY=1" not in playing.requests[0].body.decode()
