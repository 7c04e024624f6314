"""Work in the page of `pawl web`, in Chromium: a conversation, its calls, and every answer to what waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser.chrome import Site, Tab
from ui.cli.projects import SETTINGS
from ui.cli.test_cli_do import FILES, FIX, RIGHT

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7", "B7")]

Open = Callable[..., Site]
SLOW = """
[[turn]]
answer = { text = "I **look** first.", thoughts = [{ text = "Where may it be?" }], calls = [
  { name = "run_command", arguments = { command = "echo begun; sleep 300" } }] }
[[turn]]
times = 0
answer = "So be it."
"""
FAR = "\n".join(f"# line {number}" for number in range(20))
TWO = {
    **SETTINGS,
    "app.py": f"def one():\n    return 0\n\n\n{FAR}\n\n\ndef two():\n    return 0\n",
    "other.py": "def three():\n    return 0\n",
    "test_app.py": "from app import one\n\n\ndef test_one():\n    assert one() in (0, 1)\n",
}
# What a tab does that comes back into sight; until the answer is there and was drawn.
ASK_AGAIN = """new Promise((done) => {
  const watch = new PerformanceObserver((seen) => {
    if (!seen.getEntries().some((one) => one.name.endsWith("/api/state"))) return;
    watch.disconnect();
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(null))));
  });
  watch.observe({ type: "resource" });
  document.dispatchEvent(new Event("visibilitychange"));
})"""
COVERED = """[...document.querySelectorAll("#request, .composer .button")].filter((one) => {
  const box = one.getBoundingClientRect();
  return !one.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}).map((one) => one.textContent || one.id)"""
PATCHES = (
    ("app.py", "one():\\n    return 0", "one():\\n    return 1"),
    ("app.py", "two():\\n    return 0", "two():\\n    return 2"),
    ("other.py", "return 0", "return 3"),
)
CALL = '{ name = "strict_patch", arguments = { path = "%s", old = "%s", new = "%s" } }'
EDITS = f"""
[[turn]]
answer = {{ calls = [{", ".join(CALL % patch for patch in PATCHES)}] }}
[[turn]]
times = 0
answer = "They return their numbers."
"""


def texts(site: Site) -> tuple[str, str]:
    return tuple((site.pawl.workspace / name).read_text() for name in ("app.py", "other.py"))


def waits(tab: Tab, request: str = "let the functions return numbers") -> None:
    tab.ask(request)
    tab.status("waits for you")
    tab.css(".approval .diff").seen()


def test_a_conversation_is_streamed_with_its_calls_and_its_change_is_approved_undone_and_redone(opened: Open):
    site = opened(FILES, FIX)
    tab, code = site.tab, site.pawl.workspace / "app.py"
    tab.ask("fix the bug in after")
    tab.css(".said").having("fix the bug in after").seen()
    tab.css(".markdown").having("I look.").seen()
    patch = tab.css("details.tool").having("strict_patch")
    patch.css("summary").click()
    patch.css(".line.plus").having("+ 1").seen()
    tab.status("waits for you")
    tab.css(".approval").text("verified", exact=True).seen()
    assert code.read_text() == FILES["app.py"]
    tab.shot("approval-1280")
    tab.button("Approve").click()
    tab.css(".delivery").having("done").seen()
    tab.status("ready")
    assert code.read_text() == RIGHT
    bar = tab.css(".work-bar")
    bar.button("Undo").click()
    tab.css(".toast").having("undo").seen()
    assert code.read_text() == FILES["app.py"]
    bar.button("Redo").click()
    tab.css(".toast").having("redo").seen()
    assert code.read_text() == RIGHT


def test_a_run_that_works_shows_thoughts_folded_is_steered_queued_stopped_and_resumed(opened: Open):
    site = opened(FILES, SLOW)
    tab = site.tab
    tab.label("approval").choose("final")
    tab.ask("look around")
    tab.css(".markdown strong").having("look").seen()
    thought = tab.css("details.thought")
    assert thought.attribute("open") is None
    thought.css("summary").click()
    thought.text("Where may it be?").seen()
    # The output of a command comes while it works.
    tab.css(".output").having("begun").seen()
    tab.ask("hurry up")
    tab.css(".toast").having("said to the run").seen()
    # On a small screen nothing that is said in passing lies over what is typed and its buttons.
    tab.size(360)
    tab.css(".app:not(.wide) #request").seen()
    assert tab.evaluate(COVERED) == []
    tab.size(1280)
    tab.css("#request").fill("and then rest")
    tab.css("#request").press("Alt+Enter")
    tab.css(".queue li").having("and then rest").seen()
    tab.css(".queue").button("Clear").click()
    tab.css(".queue").gone()
    tab.key("Control+.")
    tab.text("stopped before its end").seen()
    tab.status("ready")
    tab.button("Resume").click()
    tab.text("resumed", exact=True).seen()
    # The call that was cut off is made anew.
    tab.css("details.tool").nth(1).css(".output").having("begun").seen()
    tab.text("stopped before its end").gone()
    assert tab.css("details.tool").having("no answer").count() == 1
    tab.button("Stop").click()
    tab.text("stopped before its end").seen()
    tab.status("ready")


def test_mode_model_reasoning_and_budget_are_always_in_sight_and_the_users_own(opened: Open):
    site = opened(FILES, FIX)
    tab = site.tab
    tab.label("mode").choose("chat")
    tab.label("reasoning").choose("on")
    tab.button("no budget set").click()
    tab.role("dialog").label("US dollars").fill("0.5")
    # The state of the session comes anew meanwhile, and nothing of what was typed is lost.
    tab.evaluate(ASK_AGAIN)
    tab.role("dialog").button("Set").click()
    tab.button("budget $0.5").seen()
    tab.role("dialog").gone()
    tab.ask("what does after do?")
    tab.css(".delivery").seen()
    tab.status("ready")
    tab.call(["reload", []])
    tab.button("budget $0.5").seen()
    assert [tab.label(one).value() for one in ("mode", "reasoning", "approval")] == ["chat", "on", "final"]
    # Also where there is little room, in words.
    tab.size(360)
    said = "chat · scripted:script.toml · reasoning on · approve at the end · budget $0.5"
    tab.css(".status .summary").having(said).seen()
    tab.shot("choices-360")
    tab.css(".status .summary").click()
    tab.role("dialog", "Choices").label("mode").choose("agent")
    tab.css(".status .summary").having("agent · ").seen()


def test_only_the_hunks_and_files_that_are_chosen_are_promoted(opened: Open):
    site = opened(TWO, EDITS)
    tab = site.tab
    waits(tab)
    tab.css(".approval").text("2 files, 3 of 3 hunks chosen").seen()
    tab.css(".approval").label("all of other.py").click()
    tab.css(".approval .diff-file").having("app.py").css(".hunk").nth(1).role("checkbox").click()
    tab.button("Approve 1 hunk").click()
    tab.css(".delivery-line").seen()
    tab.status("ready")
    app, other = texts(site)
    assert "return 1" in app and "return 2" not in app and other == TWO["other.py"]


def test_a_change_is_rejected_with_a_reason_that_the_model_is_told(opened: Open):
    site = opened(TWO, EDITS)
    tab = site.tab
    waits(tab)
    tab.button("Reject…").click()
    tab.label("why (the model is told)").fill("leave other.py alone")
    tab.button("Reject").click()
    tab.text("rejected: leave other.py alone").seen()
    assert texts(site) == (TWO["app.py"], TWO["other.py"])


def test_a_patch_is_edited_before_it_is_approved(opened: Open):
    site = opened(FILES, FIX)
    tab = site.tab
    waits(tab, "fix the bug in after")
    tab.button("Edit the patch").click()
    area = tab.label("the patch; what you approve is what stands here")
    area.fill(area.value().replace("return number + 1", "return 1 + number"))
    tab.button("Approve as edited").click()
    tab.css(".delivery-line").seen()
    tab.status("ready")
    assert (site.pawl.workspace / "app.py").read_text() == "def after(number):\n    return 1 + number\n"


def test_commands_are_typed_as_requests_and_a_plan_is_handed_over(opened: Open):
    # Only who may change something is offered a patch.
    talk = FIX.replace("[[turn]]", '[[turn]]\nmatch = { tools = ["strict_patch"] }')
    site = opened(FILES, talk + '[[turn]]\ntimes = 0\nanswer = "Add one instead of two."\n')
    tab = site.tab
    tab.css("#request").fill("/che")
    tab.css(".hints").text("/checkpoint").click()
    assert tab.css("#request").value() == "/checkpoint "
    tab.ask("/checkpoint before")
    tab.role("dialog").text("before").seen()
    tab.role("dialog").button("close").click()
    tab.role("dialog").gone()
    tab.ask("/nonsense")
    tab.css(".toast.bad").having("there is no command '/nonsense'").seen()
    tab.ask("/plan how would you fix it?")
    tab.css("select[title=mode]:has(option[value=plan]:checked)").seen()
    tab.css(".delivery").button("Carry out this plan").click()
    tab.css(".said").having("Carry out the plan: how would you fix it?").seen()
    tab.css("select[title=mode]:has(option[value=agent]:checked)").seen()
    tab.css(".approval .diff").seen()
    tab.key("Alt+a")
    tab.css(".delivery").having("verified").seen()
    assert (site.pawl.workspace / "app.py").read_text() == RIGHT


def test_calls_that_wait_are_allowed_once_always_in_a_run_or_not_at_all(opened: Open):
    site = opened(TWO, EDITS)
    tab = site.tab
    tab.label("approval").choose("each")
    tab.ask("let the functions return numbers")
    tab.css(".approval").having("A call waits for your yes").seen()
    tab.label("always in this run").click()
    tab.button("Allow").click()
    # The other two calls are not asked about; what came of them all is.
    tab.css(".approval").having("A change waits for your approval").seen()
    tab.css(".approval").text("2 files, 3 of 3 hunks chosen").seen()
    tab.key("Alt+r")
    tab.key("Tab")
    tab.label("why (the model is told)").fill("no")
    tab.key("Enter")
    tab.css(".delivery").having("rejected: no").seen()
    assert texts(site) == (TWO["app.py"], TWO["other.py"])


@pytest.mark.spec("F3")
def test_a_command_is_run_from_the_page_its_question_answered_and_what_it_said_stays(opened: Open):
    site = opened({**FILES, "notes.txt": "one\n"}, FIX)
    tab = site.tab
    tab.ask("!echo two >> notes.txt; echo written")
    asked = tab.role("region", "question")
    asked.text("promote this?").seen()
    said = tab.role("region", "what !echo two >> notes.txt; echo written says")
    for words in ("written", "+two"):
        said.having(words).seen()
    tab.shot("command-question")
    assert [line for line in tab.audit() if line.startswith(("serious", "critical"))] == []
    asked.button("Yes").click()
    said.having("promoted as entry 1").seen()
    tab.status("ready")
    assert (site.pawl.workspace / "notes.txt").read_text() == "one\ntwo\n"
    tab.ask("/rewind")
    tab.role("article", "command /rewind").having("there is no conversation to rewind yet").seen()
    tab.ask("/trust")
    tab.css(".toast").having("pawl trust").seen()
