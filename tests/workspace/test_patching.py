"""Changes that come as text keep to the guardrails like those of a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from opened import Site
from world import snapshot

from pawl.code.code_model import EditType, FileOperation, Modification
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.code.patch_change import propose_patch, propose_text
from pawl.core.change import EntryKind
from pawl.core.errors import (
    BadPatch,
    Conflicted,
    NothingToDo,
    PathRefused,
    ProtectedRefused,
    SecretRefused,
    TextNotFound,
    TooLarge,
)
from pawl.workspace.benches import open_bench
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

PATCH = b"--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n-# Greeter\n+# Renamed\n \n Says hello.\n"

MAIN = "from greeter import salute\n\nprint(salute('world'))\n"
GREETER = 'def salute(name):\n    return f"Hello, {name}!"\n'


def new_file(path: str, content: str = "x") -> bytes:
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+{content}\n".encode()


def new_link(path: str, target: str) -> bytes:
    return new_file(path, target).replace(b"mode 100644", b"mode 120000") + b"\\ No newline at end of file\n"


@pytest.mark.spec("B9")
def test_a_patch_is_promoted_and_taken_back(site: Site, shop: Project) -> None:
    proposal = propose_patch(shop, PATCH + new_file("deep/in/new"), allow_protected=False)
    assert proposal.changes.paths == {"README.md", "deep", "deep/in", "deep/in/new"}
    assert proposal.breaches == ()
    shop.promote(shop.new_entry(EntryKind.EDIT, "patch"), proposal.changes)
    assert site.read("README.md").startswith(b"# Renamed\n")
    shop.undo(None, Wish())
    assert site.read("README.md").startswith(b"# Greeter\n")
    assert not (site.workspace / "deep").exists()


@pytest.mark.spec("A15")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        (".env", SecretRefused),
        ("keys/server.key", SecretRefused),
        ("sub/.git/hooks/post-checkout", ProtectedRefused),
        (".GIT/config", ProtectedRefused),
        ("AGENTS.md", ProtectedRefused),
        ("../outside", BadPatch),
    ],
)
def test_one_path_that_is_refused_refuses_the_whole_patch(shop: Project, path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        propose_patch(shop, PATCH + new_file(path), allow_protected=False)


@pytest.mark.spec("A15")
def test_a_protected_file_needs_the_users_own_yes_and_git_and_secrets_no_yes_at_all(shop: Project) -> None:
    assert propose_patch(shop, new_file("AGENTS.md"), allow_protected=True).changes.paths == {"AGENTS.md"}
    for path, error in ((".env", SecretRefused), (".git/config", ProtectedRefused)):
        with pytest.raises(error):
            propose_patch(shop, new_file(path), allow_protected=True)


@pytest.mark.spec("A15")
def test_a_file_over_a_megabyte_is_refused(site: Site, shop: Project) -> None:
    site.write("big", b"# Greeter\n\nSays hello.\n" + b"x" * (1 << 20) + b"\n")
    with pytest.raises(TooLarge, match="'big' has"):
        propose_patch(shop, PATCH.replace(b"README.md", b"big"), allow_protected=False)


@pytest.mark.spec("A15")
def test_a_change_above_the_presets_limits_is_to_be_asked_about(shop: Project) -> None:
    many = b"".join(new_file(f"f{n}") for n in range(6))
    assert propose_patch(shop, many, allow_protected=False).breaches == ("6 files change; the guardrail asks above 5",)


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "src/../../x", "first/.."])
def test_a_link_out_of_the_workspace_is_refused(site: Site, shop: Project, target: str) -> None:
    text = new_link("first", ".") + new_link("way", target)
    with pytest.raises(PathRefused, match="'way' cannot be written: it leads out of the workspace"):
        propose_patch(shop, text, allow_protected=False)


def test_a_link_inside_the_workspace_is_fine(shop: Project) -> None:
    assert propose_patch(shop, new_link("way", "src/greeter.py"), allow_protected=False).changes.paths == {"way"}


def test_a_patch_through_a_link_is_refused(site: Site, shop: Project, tmp_path: Path) -> None:
    (site.workspace / "way").symlink_to(tmp_path)
    with pytest.raises((PathRefused, Conflicted)):
        propose_patch(shop, new_file("way/new"), allow_protected=False)
    assert list(tmp_path.iterdir()) == []


def test_a_patch_that_does_not_fit_is_a_conflict(shop: Project) -> None:
    with pytest.raises(Conflicted, match="the patch does not fit"):
        propose_patch(shop, PATCH.replace(b"-# Greeter", b"-# Other"), allow_protected=False)


def test_one_text_becomes_another(site: Site, shop: Project) -> None:
    proposal = propose_text(shop, "README.md", "Says hello.", "Says goodbye.", allow_protected=False)
    shop.promote(shop.new_entry(EntryKind.EDIT, "text"), proposal.changes)
    assert site.read("README.md") == b"# Greeter\n\nSays goodbye.\n"


def test_a_text_in_an_ignored_file_can_be_replaced_too(site: Site, shop: Project) -> None:
    site.write(".gitignore", b"*.local\n")
    site.write("settings.local", b"a = 1\n")
    proposal = propose_text(shop, "settings.local", "a = 1", "a = 2", allow_protected=False)
    assert proposal.changes.paths == {"settings.local"}


def test_a_text_that_is_not_there_or_is_the_same_is_told(shop: Project) -> None:
    with pytest.raises(TextNotFound):
        propose_text(shop, "README.md", "nowhere", "x", allow_protected=False)
    with pytest.raises(NothingToDo):
        propose_text(shop, "README.md", "Says", "Says", allow_protected=False)


@pytest.mark.spec("A15")
def test_a_text_of_a_secret_or_protected_file_is_refused(site: Site, shop: Project) -> None:
    site.write("AGENTS.md", b"rules\n")
    with pytest.raises(SecretRefused):
        propose_text(shop, ".env", "old-one", "new", allow_protected=True)
    with pytest.raises(ProtectedRefused):
        propose_text(shop, "AGENTS.md", "rules", "none", allow_protected=False)
    assert propose_text(shop, "AGENTS.md", "rules", "none", allow_protected=True).changes.paths == {"AGENTS.md"}


@pytest.mark.spec("A7", "B9")
def test_a_chain_of_edits_over_several_files_is_one_entry_and_is_reverted_as_one(site: Site, shop: Project) -> None:
    site.write("src/main.py", b"from greeter import greet\n\nprint(greet('world'))\n")
    before = snapshot(site.workspace)
    with open_bench(shop) as bench:
        sources = {path: bench.files.read(path) for path in ("src/main.py", "src/greeter.py")}
        editor = BenchEditor(bench.files, shop.guardrails)
        renames = [
            Modification(path="src/main.py", action=FileOperation.EDIT, edit_type=EditType.FULL_REPLACE, content=MAIN),
            Modification(
                path="src/greeter.py", action=FileOperation.EDIT, edit_type=EditType.FULL_REPLACE, content=GREETER
            ),
        ]
        for path in sources:
            editor.read(path)
        editor.chain(renames, justification="the function has a new name", dependencies=ImportMap.of(sources))
        captured = bench.capture()
    promotion = shop.promote(shop.new_entry(EntryKind.EDIT, "rename", "the function has a new name"), captured.changes)
    assert promotion.changes.paths == {"src/main.py", "src/greeter.py"}
    assert site.read("src/main.py") == MAIN.encode()
    shop.undo(promotion.entry, Wish())
    assert snapshot(site.workspace) == before
