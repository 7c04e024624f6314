"""`pawl models`: what is configured, reachable, priced."""

from __future__ import annotations

from argparse import ArgumentParser
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import Json, picked
from pawl.ui.cli.parser import Command
from pawl.ui.screen.screen import brief

if TYPE_CHECKING:
    from pawl.models.router import Listed
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="look at this one instead of the configured default")
    parser.add_argument("--test", metavar="NAME", help="give this one a few small tasks, and remember what it can do")
    parser.add_argument("--offline", action="store_true", help="do not try to reach the models")


DECLARED = {
    "models": Command(words=words, example="pawl models --offline\n  pawl models --test ollama/qwen3:8b", reads=True)
}


def models(shop: Project, call: Call) -> int:
    from pawl.agent.briefing import configured
    from pawl.models.router import listed

    if call.options.test:
        return _measured(shop, call, call.options.test)
    config = configured(shop, call.options.model or "")
    found = listed(config, look=not call.options.offline, only=call.options.model or "")
    providers, environment = config.providers.values(), config.environment
    addresses = {one.name: one.address(environment) for one in providers}
    if call.options.json:
        call.emit(
            {
                "models": [_json(one) for one in found],
                "providers": [
                    {
                        "name": one.name,
                        "address": addresses[one.name],
                        "has_key": one.has_key(environment),
                        "key_names": list(one.key_env),
                        "local": one.local,
                    }
                    for one in providers
                ],
            }
        )
    else:
        _tell(call, found)
        ready = [one.name for one in providers if one.key_env and one.has_key(environment)]
        call.out.say(f"keys are set for: {', '.join(ready) or 'no provider'}")
        call.out.say(f"need no key: {', '.join(one.name for one in providers if not one.key_env)}")
        call.out.say(f"also known: {', '.join(one.name for one in providers if not one.has_key(environment))}")
    return 0 if all(one.ready is not False for one in found) else 1


def _measured(shop: Project, call: Call, model: str) -> int:
    from pathlib import Path

    from pawl.agent.briefing import configured
    from pawl.models.model_trial import measured, remember

    results = []
    for one in measured(configured(shop), model, Path(shop.workspace)):
        results.append(one)
        if not call.options.json:
            call.out.say(f"{'✓' if one.passed else '✗'} {one.name}" + (f": {brief(one.said)}" if one.said else ""))
    once = remember(shop.config.state, model, tuple(results))
    if call.options.json:
        call.emit({"model": model, "tasks": [picked(one, "name of passed said") for one in results], "once": once})
    elif once:
        call.out.say(f"{model} calls tools badly: from now on it is sent the code in one request and answers in one")
    else:
        call.out.say(f"{model} is given tools")
    return 0


def _tell(call: Call, found: tuple[Listed, ...]) -> None:
    if not found:
        call.out.say("no model is configured")
        call.out.hint("find and save one with: pawl setup; or name one with --model or PAWL_MODEL")
        return
    rows = [
        (one.model, ", ".join(one.used_for), _state(one), _price(one), f"{one.context:,}", _tools(one)) for one in found
    ]
    heads = ("model", "used for", "state", "$ per million in / out", "context", "tools")
    call.out.table(heads, rows, flexible=2)
    for one in found:
        if one.advice:
            call.out.hint(f"{one.model}: {one.advice}")


def _tools(one: Listed) -> str:
    return "one request" if one.once else one.tools


def _state(one: Listed) -> str:
    mark = {True: "✓ ", False: "✗ ", None: "not looked for"}[one.ready]
    return f"{mark}{one.detail}"


def _price(one: Listed) -> str:
    if one.input_price is None or one.output_price is None:
        return "unknown"
    return f"{_amount(one.input_price)} / {_amount(one.output_price)}"


def _amount(price: Decimal) -> str:
    return f"{price.normalize():f}" if price else "0"


def _json(one: Listed) -> Json:
    return {
        **picked(one, "model used_for ready detail advice"),
        "input_usd_per_million": one.input_price,
        "output_usd_per_million": one.output_price,
        **picked(one, "context tools once"),
    }
