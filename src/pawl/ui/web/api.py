"""The answers to the page: the state of the session, runs and their changes, files, and commands of the command line as
JSON."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from pawl.agent.edited_change import edited
from pawl.agent.session import Session
from pawl.checks import dev_process
from pawl.core import __version__
from pawl.core.change import ChangeSet
from pawl.core.dialogue import TranscriptLine, typed_words
from pawl.core.errors import (
    Conflicted,
    NotFound,
    PathRefused,
    PawlError,
    ProtectedRefused,
    Refused,
    StoreBusy,
    UnknownEntry,
    UsageError,
)
from pawl.core.run import ApprovalAnswer, ApprovalResponse, RunState
from pawl.core.typed import Unreadable, read_json
from pawl.sandbox.cancel import CancelToken
from pawl.ui.cli.encoder import Json, as_json, picked, report_json
from pawl.ui.cli.main import run_words
from pawl.ui.screen.run_report import changes_of
from pawl.ui.screen.screen import Screen
from pawl.ui.terminal.commands import commands_of
from pawl.ui.web import workspace_view
from pawl.ui.web.page_actions import PageActions, PageFace, Said
from pawl.ui.web.page_files import PageFile
from pawl.ui.web.page_sides import Pages, WorkspaceSide
from pawl.ui.web.typed_commands import CHANGING, COMMANDS, READ_ONLY, TypedCommand, listed, typed
from pawl.ui.web.web_session import error_json
from pawl.workspace.project import Project

STATUSES: tuple[tuple[type[PawlError], int], ...] = (
    (Conflicted, 409),
    (PathRefused, 404),
    (NotFound, 404),
    (UnknownEntry, 404),
    (Refused, 403),
    (StoreBusy, 503),
)
MOST_RUNS = 500
MOST_LOG_LINES = 200
Work = Callable[[Project], Any]


class Api:
    """Each method is one address."""

    def __init__(self, side: WorkspaceSide, pages: Pages) -> None:
        self._session, self._feed = side.session, side.feed
        self._reader, self._commands = side.reader, side.commands
        self._searches, self._checks = side.threads["searches"], side.threads["checks"]
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            self._route("/api/state", self.state),
            self._route("/api/choices", self.choices, "PUT"),
            self._route("/api/requests", self.requests, "POST"),
            self._route("/api/commands", self.commands),
            self._route("/api/stop", self.stop, "POST"),
            self._route("/api/verify/stop", self.stop_checks, "POST"),
            self._route("/api/spec/clarify", self.clarify, "POST"),
            self._route("/api/say", self.say, "POST"),
            self._route("/api/told", self.told),
            self._route("/api/queue", self.queue, "DELETE"),
            self._route("/api/conversation", self.conversation, "POST"),
            self._route("/api/conversations", self.conversations),
            self._route("/api/conversations/{id}", self.transcript),
            self._route("/api/runs", self.runs),
            self._route("/api/tests", self.tests),
            self._route("/api/runs/{run}", self.run),
            self._route("/api/runs/{run}/change", self.run_change),
            self._route("/api/runs/{run}/answer", self.answer, "POST"),
            self._route("/api/runs/{run}/resume", self.resume, "POST"),
            self._route("/api/entries/{entry:int}/change", self.entry_change),
            self._route("/api/changes", self.changes),
            self._route("/api/events", self.events),
            self._route("/api/files", self.files),
            self._route("/api/files/all", self.all_files),
            self._route("/api/files/changed", self.changed_files),
            self._route("/api/file", self.file),
            self._route("/api/file", self.save, "PUT"),
            self._route("/api/outline", self.outline),
            self._route("/api/definition", self.definition),
            self._route("/api/search", self.search),
            self._route("/api/command", self.command, "POST"),
            self._route("/api/preview", self.preview),
            self._route("/api/preview/start", self.start_preview, "POST"),
            self._route("/api/preview/stop", self.stop_preview, "POST"),
            self._route("/api/page/{what}", self.page, "POST"),
        ]

    def _route(self, path: str, answer: Callable[[Request], Awaitable[object]], method: str = "GET") -> Route:
        async def answered(request: Request) -> Response:
            try:
                body = await answer(request)
            except PawlError as error:
                status = next((code for kind, code in STATUSES if isinstance(error, kind)), 400)
                return JSONResponse(error_json(error), status)
            except OSError as error:
                said = {"error": "system", "message": error.strerror or str(error), "advice": ""}
                return JSONResponse(said, 404 if isinstance(error, FileNotFoundError) else 400)
            return body if isinstance(body, Response) else Response(as_json(body), media_type="application/json")

        return Route(path, answered, methods=[method])

    async def state(self, request: Request) -> Json:
        session, choices = self._session, self._session.wishes
        model = session.shared.model or ""
        waiting, models = await self._reader.run(_waiting), await self._reader.run(_models)
        at_work, left = await self._reader.run(_at_work)
        budget = {"money": session.budget.get("money"), "seconds": session.budget.get("seconds")}
        return {
            "version": __version__,
            "workspace": str(session.workspace),
            "name": session.workspace.name,
            "model": model,
            "models": list(dict.fromkeys((*models, *((model,) if model else ())))),
            "choices": {"mode": choices.mode_word, **picked(choices, "approval model reasoning"), "budget": budget},
            "conversation": choices.conversation,
            "working": session.is_working,
            "run": session.session.shop.run_id if session.is_working else waiting and waiting["run"],
            "left": left,
            "elsewhere": [one for one in at_work if not session.is_working or one != session.session.shop.run_id],
            "waiting": None if session.is_working else waiting,
            "queued": [one.text for one in session.session.queued],
            "trouble": session.trouble,
            "asked": session.asked,
            "said": session.said,
            "last_event": await self._feed.last(),
            "entry": max((one.id for one in await self._reader.run(lambda shop: shop.entries(limit=1))), default=0),
            "page": {"build": self._pages.own.shown()[0], "note": self._pages.own.state.note},
        }

    async def choices(self, request: Request) -> Json:
        given = await _body(request)
        await self._commands.run(lambda _: self._session.choose(given))
        return await self.state(request)

    async def requests(self, request: Request) -> Json:
        given = await _body(request)
        text, queue = _text(given, "text"), given.get("queue") is True
        has_model = bool(self._session.shared.model)
        meant = await self._commands.run(lambda shop: typed(shop, text, model=has_model))
        if meant is None:
            return {"taken": self._session.request(text, queue=queue)}
        if meant.act and meant.waits:
            return {"taken": self._session.act(text, meant.act, meant.request)}
        return await self._carried_out(meant, queue=queue or meant.queued)

    async def _carried_out(self, meant: TypedCommand, *, queue: bool) -> Json:
        if meant.act:
            return {"taken": "command", "exit_code": 0, "text": await self._commands.run(self._acting(meant))}
        if meant.line:
            code, said = await self._ran(list(meant.line))
            return {"taken": "command", "exit_code": code, "text": said}
        if meant.own is not None:
            self._session.carry_out(meant.own, meant.request)
            return {"taken": "begun"}
        if meant.choice is not None:
            name, value = meant.choice
            await self._commands.run(lambda _: self._session.choose({name: value}))
        if meant.anew:
            self._session.wishes.conversation = ""
            self._session.changed()
        return {"taken": self._session.request(meant.request, queue=queue) if meant.request else "chosen"}

    def _acting(self, meant: TypedCommand) -> Callable[[Project], str]:
        """What a command says that needs nothing but the session, whatever works meanwhile."""

        def act(shop: Project) -> str:
            self._session.shared.commands = commands_of(shop.config, shop.workspace)
            said = Said()
            PageActions(self._session, PageFace(said)).carry_out(meant.act, meant.request)
            self._session.changed()
            return said.getvalue()

        return act

    async def told(self, request: Request) -> object:
        """What the latest commands have said."""
        return list(self._session.told)

    async def commands(self, request: Request) -> object:
        return await self._commands.run(listed)

    async def stop(self, request: Request) -> Json:
        return {"stopped": self._session.stop()}

    async def stop_checks(self, request: Request) -> Json:
        return {"stopped": self._checks.interrupt()}

    async def clarify(self, request: Request) -> object:
        given = await _body(request)
        spec, answers = _text(given, "spec"), given.get("answers") or []
        if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
            raise UsageError("answers are texts", advice='such as ["yes", "no"]')
        return await self._taken(lambda shop: self._session.clarify(shop, spec, answers))

    async def say(self, request: Request) -> Json:
        """The user's answer to what a command asks."""
        given = await _body(request)
        number = given.get("id")
        return {"taken": isinstance(number, int) and self._session.say(number, _text(given, "text"))}

    async def queue(self, request: Request) -> Json:
        self._session.unqueue()
        return await self.state(request)

    async def conversation(self, request: Request) -> Json:
        wanted = _text(await _body(request), "id")
        if wanted:
            await self._reader.run(lambda shop: Session(shop).transcript(wanted))
        self._session.wishes.conversation = wanted
        self._session.changed()
        return await self.state(request)

    async def conversations(self, request: Request) -> object:
        return await self._reader.run(
            lambda shop: [picked(one, "id title started last turns") for one in Session(shop).conversations(limit=200)]
        )

    async def transcript(self, request: Request) -> object:
        wanted = request.path_params["id"]
        return await self._reader.run(lambda shop: [_said(one) for one in Session(shop).transcript(wanted)])

    async def runs(self, request: Request) -> object:
        most = min(_number(request, "limit", 50), MOST_RUNS)
        return await self._reader.run(
            lambda shop: [
                {
                    **picked(one, "id created state delivery"),
                    "node": one.place.at,
                    "request": typed_words(one.order.text),
                    "mode": one.order.mode,
                }
                for one in Session(shop).runs(limit=most)
            ]
        )

    async def tests(self, request: Request) -> object:
        """The counts of the last tests of each run, as far as some ran."""
        most = min(_number(request, "limit", 40), MOST_RUNS)

        def counted(shop: Project) -> Json:
            session = Session(shop)
            return {one.id: session.report(one.id).after for one in session.runs(limit=most)}

        return await self._searches.run(counted)

    async def run(self, request: Request) -> object:
        run = request.path_params["run"]

        def told(shop: Project) -> Json:
            report = Session(shop).report(run)
            return {**report_json(shop, report, changes_of(shop, report)), "request": report.request}

        return await self._reader.run(told)

    async def run_change(self, request: Request) -> object:
        run = request.path_params["run"]

        def shown(shop: Project) -> Json:
            report = Session(shop).report(run)
            digest = "" if report.question is None else report.question.digest
            return workspace_view.change_json(changes_of(shop, report), shop.store.blobs, digest)

        return await self._reader.run(shown)

    async def entry_change(self, request: Request) -> object:
        entry = request.path_params["entry"]
        return await self._reader.run(
            lambda shop: workspace_view.change_json(shop.changes(shop.entry(entry)), shop.store.blobs)
        )

    async def changes(self, request: Request) -> object:
        """What was changed after one entry of the history, up to another or to the present."""
        after, until = _number(request, "after", 0), _number(request, "until", 0)
        return await self._reader.run(lambda shop: workspace_view.between(shop, after, until or None))

    async def answer(self, request: Request) -> object:
        run, given = request.path_params["run"], await _body(request)
        patch = _text(given, "patch")
        if given.get("answer") == ApprovalAnswer.APPROVE:
            await self._allow(given, lambda shop: _promoted(shop, run, patch))
        hunks = given.get("hunks") or []
        if not isinstance(hunks, list) or not all(isinstance(one, int) for one in hunks):
            raise UsageError("hunks are numbers", advice="such as [1, 3]")
        try:
            answer = ApprovalAnswer(_text(given, "answer"))
        except ValueError as error:
            raise UsageError("an answer is approve or reject", advice="send one of them") from error
        response = ApprovalResponse(
            answer=answer,
            digest=_text(given, "digest"),
            reason=_text(given, "reason"),
            hunks=tuple(hunks),
            patch=patch,
        )
        always = given.get("always") is True
        return await self._taken(lambda shop: self._session.answer(shop, run, response, always=always))

    async def _allow(self, given: Mapping[str, Any], changing: Callable[[Project], ChangeSet]) -> None:
        """Refuse what is given for a change if it lacks something."""

    async def resume(self, request: Request) -> object:
        run = request.path_params["run"]
        return await self._taken(lambda shop: self._session.resume(shop, run))

    async def _taken(self, work: Callable[[Project], None]) -> object:
        """Refuse what does not fit the state of the run."""
        try:
            await self._reader.run(work)
        except UsageError as error:
            return JSONResponse(error_json(error), 409)
        return {"taken": True}

    async def events(self, request: Request) -> Response:
        if self._feed.is_full:
            said = {"error": "busy", "message": "too many tabs are open", "advice": "close one of them"}
            return JSONResponse(said, 503)
        after, run = _number(request, "after", 0), request.query_params.get("run", "")
        return StreamingResponse(self._feed.lines(after, run), media_type="text/event-stream")

    async def files(self, request: Request) -> object:
        return await self._reader.run(lambda shop: workspace_view.folder(shop, _asked(request, "path")))

    async def all_files(self, request: Request) -> object:
        return await self._searches.run(workspace_view.all_paths)

    async def changed_files(self, request: Request) -> object:
        return await self._searches.run(workspace_view.changed_paths)

    async def file(self, request: Request) -> object:
        return await self._reader.run(lambda shop: workspace_view.file(shop, _asked(request, "path")))

    async def save(self, request: Request) -> object:
        given = await _body(request)
        path, text, base = (_text(given, name) for name in ("path", "text", "base"))
        change = await self._reader.run(lambda shop: workspace_view.edit(shop, path, text, base))
        await self._allow(given, lambda shop: ChangeSet.of([change]))
        saved = await self._reader.run(lambda shop: workspace_view.save(shop, change, text))
        if isinstance(entry := saved["entry"], int):
            self._session.promoted.append(entry)
            self._session.changed()
        return saved

    async def outline(self, request: Request) -> object:
        return await self._searches.run(lambda shop: workspace_view.outline(shop, _asked(request, "path")))

    async def definition(self, request: Request) -> object:
        name, path = _asked(request, "name"), _asked(request, "path")
        return await self._searches.run(lambda shop: workspace_view.definitions(shop, name, path))

    async def search(self, request: Request) -> object:
        query, regex = _asked(request, "q"), _asked(request, "regex") == "1"
        return await self._searches.run(lambda shop: workspace_view.search(shop, query, regex=regex))

    async def command(self, request: Request) -> object:
        words = (await _body(request)).get("words")
        if not isinstance(words, list) or not words or not all(isinstance(one, str) for one in words):
            raise UsageError("a command is a list of words", advice='such as {"words": ["history"]}')
        if words[0] not in COMMANDS and words[:2] not in READ_ONLY:
            raise UsageError(f"the page does not call {words[0]!r}", advice=f"it calls {', '.join(sorted(COMMANDS))}")
        code, said = await self._ran([*words, "--json"])
        return {"exit_code": code, "body": json.loads(said) if said.strip() else None}

    async def page(self, request: Request) -> object:
        """The page itself: it came up or did not, its note was read, or it is to be changed."""
        what, build = request.path_params["what"], _text(await _body(request), "build")
        match what:
            case "up":
                self._pages.own.up(build)
            case "down":
                self._pages.own.down(build)
            case "left":
                self._pages.own.left(build)
            case "read":
                self._pages.own.note("")
            case "open":
                await asyncio.to_thread(self._pages.opened)
            case _:
                raise NotFound(f"the page has no {what!r}", advice="up, down, left, read or open")
        self._session.changed()
        return {"taken": True}

    async def _ran(self, words: list[str]) -> tuple[int, str]:
        """The exit code of a command of the command line, and what it said."""

        def run(shop: Project, stop: CancelToken) -> tuple[int, str]:
            said = io.StringIO()
            line = ["-C", shop.workspace, *words]
            screen = Screen(said, color=False)
            code = run_words(shop, line, screen, for_program="--json" in words, cancel=stop)
            return code, said.getvalue()

        thread = {"verify": self._checks, "locate": self._searches}.get(words[0], self._commands)
        ended = await thread.run_command(run)
        if words[0] in CHANGING:
            self._session.changed()
        return ended

    async def preview(self, request: Request) -> object:
        found, port = await self._reader.run(_preview)
        return {**found, "url": await self._pages.frame.address(port) if port else ""}

    async def start_preview(self, request: Request) -> object:
        given = await _body(request)
        run, anew = _text(given, "run"), given.get("anew") is True
        await self._commands.run(lambda shop: self._pages.start_server(shop, run, anew=anew))
        return await self.preview(request)

    async def stop_preview(self, request: Request) -> object:
        await self._commands.run(dev_process.stop)
        return await self.preview(request)


class OwnApi(Api):
    """That of the page's own sources: what is previewed is the page as a change that waits would make it."""

    async def _allow(self, given: Mapping[str, Any], changing: Callable[[Project], ChangeSet]) -> None:
        """Files without which the page does not come up need a yes of their own, whoever changed them."""
        if given.get("protected") is True:
            return
        asked = await self._reader.run(lambda shop: shop.asked_about(changing(shop)))
        if asked:
            raise ProtectedRefused(
                "; ".join(asked), advice="the page may not come up with this change: approve it once more"
            )

    async def preview(self, request: Request) -> object:
        return self._pages.previewed()

    async def start_preview(self, request: Request) -> object:
        await self._commands.run(self._pages.build_preview)
        return self._pages.previewed()

    async def stop_preview(self, request: Request) -> object:
        self._pages.preview = {}
        return self._pages.previewed()


def application(api: Api, files: Callable[[str], PageFile | None], shown_by: str = "'none'", *more: Mount) -> Starlette:
    """The addresses of the API and the files of a page, which are asked for by their path."""

    async def paged(request: Request) -> Response:
        path = f"/{request.path_params['path']}"
        found = files(f"{path}?{request.url.query}" if request.url.query else path)
        if found is None:
            return JSONResponse({"error": "not_found", "message": "there is no such page", "advice": ""}, 404)
        body, headers = found.answer(shown_by)
        return Response(body, headers=headers)

    return Starlette(routes=[*api.routes(), *more, Route("/{path:path}", paged, methods=["GET"])])


def _preview(shop: Project) -> tuple[Json, int]:
    """The project's dev server on its bench, and its port; 0 while it does not serve."""
    record = dev_process.status(shop)
    if record is None:
        return {"running": False, "framework": "", "log": [], "ended": ""}, 0
    port = record.port if record.state is dev_process.ServerState.READY else 0
    log = dev_process.logs(shop, MOST_LOG_LINES).splitlines()
    ended = f"{record.name}: {record.reason or 'it has ended'}" if record.state is dev_process.ServerState.ENDED else ""
    return {"running": port > 0, "framework": record.name, "log": log, "ended": ended}, port


def _promoted(shop: Project, run: str, patch: str) -> ChangeSet:
    """The change that a yes would promote: the one that waits, or as the user has edited it."""
    return edited(shop, patch) if patch else changes_of(shop, Session(shop).report(run))


def _waiting(shop: Project) -> Json | None:
    session = Session(shop)
    found = session.runs(state=RunState.WAITING, limit=1)
    if not found:
        return None
    report = session.report(found[0].id)
    return {"run": report.run, "question": report.question, "request": report.request}


def _at_work(shop: Project) -> tuple[list[str], str | None]:
    """The runs that somebody carries now, here or in another process; and the newest of all if it is left so."""
    found = Session(shop).runs(state=RunState.WORKING, limit=MOST_RUNS)
    carried = [one.id for one in found if shop.is_carried(one.id)]
    newest = [one.id for one in Session(shop).runs(limit=1) if one.state is RunState.WORKING]
    return carried, next((one for one in newest if one not in carried), None)


def _models(shop: Project) -> tuple[str, ...]:
    from pawl.agent.briefing import configured
    from pawl.models.router import listed

    return tuple(one.model for one in listed(configured(shop), look=False))


def _said(line: TranscriptLine) -> Json:
    message = line.message
    return {
        **picked(line, "number time run reasoning"),
        "speaker": "pawl" if message.automatic else message.speaker,
        "text": typed_words(message.text) if message.is_users else message.text,
        "calls": [picked(one, "id name arguments") for one in message.calls],
        "results": [picked(one, "call text failed") for one in message.answers],
    }


async def _body(request: Request) -> dict[str, Any]:
    try:
        given = read_json(await request.body())
        json.dumps(given, ensure_ascii=False).encode()  # Half a letter is none.
    except (Unreadable, UnicodeError) as error:
        raise UsageError("the body is not JSON", advice="send an object") from error
    if not isinstance(given, dict):
        raise UsageError("the body is not an object", advice="send an object")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text", advice="send it in quotes")
    return value


def _asked(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _number(request: Request, name: str, usual: int) -> int:
    text = request.query_params.get(name, str(usual))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise UsageError(f"{name} is a number", advice="such as 0")
    return int(text)
