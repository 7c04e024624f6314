"""`pawl setup`: finds the models that can be used here, tries the one that the user chooses, and saves it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import picked
from pawl.ui.cli.parser import Command
from pawl.ui.screen.screen import Face, short_path

if TYPE_CHECKING:
    from pawl.models.discovery import ModelOffer
    from pawl.models.router import ModelConfig
    from pawl.workspace.project import Project

MOST_SHOWN = 6
"""Models of one provider that are listed; any other is chosen by its name."""
WITHOUT = (
    "without a model these work: pawl fix, verify, run, locate, undo; in a session: run the tests, lint, fix them",
    "for a model on this machine install Ollama, or put a GGUF file into ~/models; for a hosted one set its key, such "
    "as ANTHROPIC_API_KEY, or enter it here with k",
)


def words(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="NAME", help="choose this one: provider/name, local:FILE.gguf, scripted:FILE"
    )
    parser.add_argument("--list", action="store_true", help="only list what was found")
    parser.add_argument("--no-test", action="store_true", help="save it without asking it anything")


DECLARED = {"setup": Command(words=words, example="pawl setup\n  pawl setup --model ollama/qwen3:8b", reads=True)}


def setup(shop: Project, call: Call) -> int:
    options = call.options
    if options.model:
        return 0 if accept(shop, call, options.model, test=not options.no_test) else 1
    found = found_here(shop)
    if options.json:
        offers = [picked(one, "provider where models key_name trouble") for one in found]
        return call.emit({"offers": offers, "default": _configured(shop).routes.default})
    if options.list or not call.can_ask:
        _tell(call, found)
        call.out.hint("choose one with: pawl setup --model NAME")
        return 0 if found else 1
    chosen = choose(shop, call, found)
    return 0 if chosen and accept(shop, call, chosen, test=not options.no_test) else 1


def found_here(shop: Project) -> tuple[ModelOffer, ...]:
    from pawl.models.discovery import offers
    from pawl.settings.config import may_come_from_workspace, parse_env

    return offers(
        _configured(shop), shop.config.home, parse_env(_workspace_env(shop), ".env", wanted=may_come_from_workspace)
    )


def _configured(shop: Project) -> ModelConfig:
    from pawl.agent.briefing import configured

    return configured(shop)


def _workspace_env(shop: Project) -> str:
    from pathlib import Path

    from pawl.settings import files as bounded
    from pawl.settings.config import LARGEST_ENV

    try:
        return bounded.read_text(Path(shop.workspace) / ".env", LARGEST_ENV, follow=False)
    except (OSError, UnicodeDecodeError):
        return ""


def _tell(face: Face, found: tuple[ModelOffer, ...]) -> list[str]:
    """Lists the offers with a number for each model; the models in that order."""
    from pawl.models.discovery import likely

    numbered: list[str] = []
    if not found:
        face.out.say("no model was found: no key is set, no server answers on this machine, and there is no GGUF file")
        for line in WITHOUT:
            face.out.hint(f"  {line}")
    for one in found:
        face.out.say(f"{one.provider}: {one.where}", "bold")
        if one.trouble:
            face.out.say(f"  ! {one.trouble}", "yellow")
        models = likely(one.models)
        for model in models[:MOST_SHOWN]:
            numbered.append(model)
            face.out.say(f"  {len(numbered):>2}  {model}")
        if len(models) > MOST_SHOWN:
            face.out.hint(f"      and {len(models) - MOST_SHOWN} more; choose one by its name")
        if one.key_name:
            numbered.append(one.key_name)
            face.out.say(f"  {len(numbered):>2}  save this key for yourself, and use {one.provider}")
    return numbered


def _chosen(face: Face, found: tuple[ModelOffer, ...], ways: str) -> str:
    """Lists the offers and asks; a number stands for what is listed with it."""
    numbered = _tell(face, found)
    ways = ways if numbered else ways.removeprefix("number, ")
    said = (face.line(f"which? [{ways}, Enter: none] ") or "").strip()
    return numbered[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(numbered) else said


def choose(shop: Project, face: Face, found: tuple[ModelOffer, ...]) -> str:
    """The model that the user names; empty for none."""
    said = _chosen(face, found, "number, provider/name, k enter a key")
    by_key = {one.key_name: one for one in found if one.key_name}
    if said in by_key:
        return _with_workspace_key(shop, face, by_key[said])
    if said.lower() == "k":
        return _with_new_key(shop, face)
    return said


def _with_workspace_key(shop: Project, face: Face, offer: ModelOffer) -> str:
    from pawl.settings.config import parse_env

    value = parse_env(_workspace_env(shop), ".env", wanted=lambda name: name == offer.key_name)[offer.key_name]
    return _saved_key(shop, face, offer.key_name, value)


def _with_new_key(shop: Project, face: Face) -> str:
    providers = {one.name: one for one in _configured(shop).providers.values() if one.key_env}
    name = (face.line(f"which provider? [{', '.join(providers)}] ") or "").strip().lower()
    if name not in providers:
        face.out.say(f"there is no provider {name!r}" if name else "nothing was saved")
        return ""
    value = (face.secret(f"{providers[name].key_env[0]} (it is not shown): ") or "").strip()
    return _saved_key(shop, face, providers[name].key_env[0], value) if value else ""


def _saved_key(shop: Project, face: Face, name: str, value: str) -> str:
    from pawl.settings.settings_writer import save_key

    file = save_key(shop.config, name, value)
    place = f"{short_path(file, shop.config.home)}, which only you can read" if file else "the keyring of this system"
    face.out.say(f"{name} is saved in {place}")
    found = tuple(one for one in found_here(shop) if name in one.where)
    return _chosen(face, found, "number or provider/name")


def accept(shop: Project, face: Face, model: str, *, test: bool = True, save: bool = True) -> bool:
    """Asks the model something, and makes it the default if it answers."""
    from pathlib import Path

    from pawl.models.discovery import tried
    from pawl.settings.settings_writer import save_default_model

    if test:
        face.activity(f"asking {model}")
        trial = tried(_configured(shop), model, Path(shop.workspace))
        face.activity("")
        if not trial.works:
            face.out.say(f"✗ {model}: {trial.detail}", "red")
            if trial.advice:
                face.out.hint(f"  {trial.advice}")
            return False
        face.out.say(f"✓ {model} {trial.detail}", "green")
    if save:
        path = save_default_model(shop.config, model)
        face.out.say(f"it is the default from now on ({short_path(path, shop.config.home)})")
    return True
