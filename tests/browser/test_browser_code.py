"""Code in the page of `pawl web`, in Chromium: the tree, the editor, what is known of names, and search."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from browser.chrome import Site
from ui.cli.projects import SETTINGS
from ui.cli.test_cli_do import FIX

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7")]

Open = Callable[..., Site]
FILES = {
    **SETTINGS,
    ".gitignore": "made/\n",
    ".env": "KEY=abcdefgh12345678\n",
    "made/out.txt": "x\n",
    "lib/app.py": "def after(number):\n    return number + 2\n\n\ndef twice(one):\n    return after(after(one))\n",
    "lib/__init__.py": "",
    "test_app.py": "from lib.app import after\n\n\ndef test_after():\n    assert after(2) == 3\n",
}


def editor(site: Site):
    return site.tab.css(".editor .cm-content")


def opened_file(site: Site, path: str) -> None:
    site.tab.key("Control+p")
    # The first key after it is already a letter of the path.
    site.tab.type(path)
    site.tab.css(".quick .hit.selected").having(path).seen()
    site.tab.key("Enter")
    site.tab.css(".editor-bar").having(path).seen()
    editor(site).seen()


def committed(site: Site) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=site.pawl.workspace, check=True)


def test_the_tree_greys_what_is_ignored_and_marks_what_has_changed(opened: Open):
    site = opened(FILES)
    committed(site)
    tab = site.tab
    (site.pawl.workspace / "lib/app.py").write_text("x = 1\n")
    tab.call(["reload", []])
    tree = tab.role("tree", "files")
    tree.role("treeitem", "made, ignored").seen()
    tree.role("treeitem", "lib, changed").seen()
    tree.role("treeitem", ".env, secret", exact=True).seen()
    tree.role("treeitem", "lib, changed").click()
    tree.role("treeitem", "app.py, changed", exact=True).seen()
    assert tree.role("treeitem", "__init__.py", exact=True).count() == 1
    # By keys alone: into the folder, down to the file, and open it.
    tree.role("treeitem", "lib, changed").press("ArrowRight")
    tab.key("ArrowDown")
    tab.key("Enter")
    tab.css(".editor-bar").having("lib/app.py").seen()
    tab.shot("tree-1280")


def test_an_edit_is_saved_and_merged_with_what_changed_on_disk(opened: Open):
    site = opened({"notes.txt": "one\ntwo\nthree\nfour\nfive\n"})
    tab, file = site.tab, site.pawl.workspace / "notes.txt"
    opened_file(site, "notes.txt")
    editor(site).click()
    tab.key("Control+Home")
    tab.type("first ")
    tab.css(".file-tab").having("•").seen()
    file.write_text("one\ntwo\nthree\nfour\nFIVE\n")
    tab.key("Control+s")
    tab.css(".toast").having("merged with what changed on disk").seen()
    assert file.read_text() == "first one\ntwo\nthree\nfour\nFIVE\n"
    editor(site).having("FIVE").seen()
    # Both at the same place: nothing is written, both are shown.
    tab.key("Control+Home")
    tab.type("my ")
    file.write_text("their one\ntwo\nthree\nfour\nFIVE\n")
    tab.key("Control+s")
    tab.text("both changed the same place; nothing was written").seen()
    assert file.read_text().startswith("their one")
    tab.shot("conflict-1280")
    tab.button("Save the right one").click()
    tab.css(".toast").having("saved (entry").seen()
    assert file.read_text() == "my first one\ntwo\nthree\nfour\nFIVE\n"


def test_outline_definition_search_and_search_by_meaning_lead_to_lines(opened: Open):
    site = opened(FILES)
    tab = site.tab
    opened_file(site, "lib/app.py")
    find = tab.role("tablist", "find")
    find.role("tab", "Outline").click()
    tab.css(".side .hit").having("twice").click()
    tab.css(".cm-activeLine").having("def twice(one)").seen()
    # Go to the definition of the name under the cursor.
    tab.key("ArrowDown")
    tab.key("End")
    for _ in ("))", "one", "(", "after"):
        tab.key("Control+ArrowLeft")
    tab.key("F12")
    tab.css(".cm-activeLine").having("def after(number)").seen()
    tab.key("Control+Shift+f")
    tab.label("text in files (Enter)").fill("assert after")
    assert tab.css(".cm-search").count() == 0
    tab.key("Enter")
    tab.css(".side .hit").having("test_app.py").click()
    tab.css(".editor-bar").having("test_app.py").seen()
    tab.css(".cm-activeLine").having("assert after(2) == 3").seen()
    find.role("tab", "Meaning").click()
    tab.label("what the code is about (Enter)").fill("compute twice the number")
    tab.key("Enter")
    tab.css(".side .hit").having("lib/app.py").click()
    tab.css(".editor-bar").having("lib/app.py").seen()


def test_findings_of_the_checks_stand_at_their_lines(opened: Open):
    site = opened({**FILES, "lib/app.py": "def after(number):\n    return missing + number\n"}, FIX)
    tab = site.tab
    tab.go("proof")
    tab.button("Verify the workspace").click()
    tab.css(".finding").having("lib/app.py").role("link").nth(0).click()
    tab.css(".editor-bar").having("lib/app.py").seen()
    tab.css(".cm-activeLine").having("return missing + number").seen()
    tab.css(".cm-lint-marker").seen()


def test_an_error_that_is_typed_is_marked_after_the_save(opened: Open):
    tab = opened({"app.py": "value = 1\n"}).tab
    tab.go("code/app.py")
    tab.css(".editor .cm-content").having("value = 1").click()
    tab.key("Control+End")
    tab.type("def broken(:")
    tab.key("Control+s")
    tab.css(".toast").having("saved (entry").seen()
    tab.css(".editor .cm-lintRange-error").seen()
