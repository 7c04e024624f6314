"""The options of the commands about ladders."""

from __future__ import annotations

import argparse

SIMPLE = 5


def loop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help="the file that is to change (default: found)")
    parser.add_argument(
        "objective", nargs="*", metavar="OBJECTIVE", help="what is wanted (default: that failing tests pass)"
    )
    parser.add_argument(
        "--simple", nargs="?", type=int, const=SIMPLE, metavar="N", help="iterations of simple mode (default 5)"
    )
    parser.add_argument("--full", action="store_true", help="begin with full mode: librarian, artisan, critic")
    parser.add_argument("--no-escalate", action="store_true", help="end with the first tier that asks a model")
    parser.add_argument("--no-reflex", action="store_true", help="leave out the search without a model")
    parser.add_argument("--tiers", metavar="FILE", help="tiers from a YAML file; it wins over the flags")
    parser.add_argument("--test", metavar="CMD", help="the command that decides (default: found by itself)")
    parser.add_argument("--no-generate", action="store_true", help="make no test where the target has none")
    parser.add_argument("--max-cost", metavar="USD", help="stop before a request that could cost more (default 5)")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens (default 5,000,000)")
    parser.add_argument("--max-minutes", type=float, metavar="N", help="time of the whole (default 240)")
    parser.add_argument("--max-iterations", type=int, metavar="N", help="iterations of all tiers (default 100)")
    parser.add_argument("--samples", type=int, metavar="N", help="attempts of one iteration; the checks choose")
    parser.add_argument("--parallel", type=int, metavar="N", help="attempts side by side, each on its bench")
    parser.add_argument("--chaos", action="store_true", help="attack what was verified before it counts")
    parser.add_argument(
        "--approve",
        choices=["final", "never"],
        default="never",
        help="ask before what was verified is promoted, or only above the guardrails' limits (default)",
    )
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--resume", nargs="?", const="", metavar="RUN", help="go on with an interrupted loop")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")
    parser.add_argument("--max-runtime", type=float, metavar="SECONDS", help="the same as --max-minutes, in seconds")
    parser.add_argument("--completion-promise", metavar="TEXT", help="taken and not relied on: the checks decide")


def audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="one run (default: the newest that climbed a ladder)")
    parser.add_argument("--list", action="store_true", help="every run that climbed a ladder")


def with_number(words: list[str]) -> list[str]:
    """`--simple` before a word that is no number stands alone."""
    made: list[str] = []
    for number, word in enumerate(words):
        alone = word == "--simple" and not "".join(words[number + 1 : number + 2]).isdigit()
        made.append(f"--simple={SIMPLE}" if alone else word)
    return made
