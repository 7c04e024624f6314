"""The words of the commands that carry out requests."""

from __future__ import annotations

import argparse


def session_words(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pawl [session] [options] [REQUEST ...]"
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="what is asked for first")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    which.add_argument(
        "-r", "--resume", nargs="?", const="", metavar="ID", help="go on with this conversation or run; choose without"
    )
    parser.add_argument("--fork-session", action="store_true", help="with -c or -r: go on in a copy of it")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--mode", choices=["agent", "chat"], default="agent", help="chat reads and answers only")
    parser.add_argument(
        "--approve",
        choices=["each", "final", "never"],
        default="final",
        help="ask before each edit, once at the end (default), or only above the guardrails' limits",
    )


def ask_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", metavar="QUESTION", help="your question; piped input goes with it")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--max-budget-usd", metavar="USD", help="stop before a request that could cost more")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens, in and out")
    parser.add_argument("--max-turns", type=int, metavar="N", help="requests at most (default 50)")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    parser.add_argument("--conversation", metavar="ID", help="go on with this one")
    parser.add_argument("--no-cache", action="store_true", help="ask again even if the answer is known and still holds")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")


def do_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="what is to be done; piped input goes with it")
    parser.add_argument(
        "--approve",
        choices=["each", "final", "never"],
        default="final",
        help="ask before each edit, once at the end (default), or only above the guardrails' limits",
    )
    parser.add_argument("--mode", choices=["agent", "chat"], default="agent", help="chat reads and answers only")
    parser.add_argument(
        "--escalate",
        action=argparse.BooleanOptionalAction,
        help="climb as pawl loop does if the checks keep refusing, or not (default: the setting escalate)",
    )
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: found by itself)")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--seconds", type=float, metavar="N", help="time limit of the whole request (default 300)")
    parser.add_argument("--max-budget-usd", metavar="USD", help="stop before a request that could cost more")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens, in and out")
    parser.add_argument("--max-turns", type=int, metavar="N", help="requests of one talk at most (default 50)")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    parser.add_argument("--conversation", metavar="ID", help="go on with this conversation")
    parser.add_argument("--fork-session", action="store_true", help="go on with a copy of it")
    parser.add_argument("--commit", action="store_true", help="commit what is promoted, without what you have staged")
    parser.add_argument("--template", metavar="NAME", help="put the request into a form, such as surgical_patch")
    parser.add_argument("--then", action="append", default=[], metavar="REQUEST", help="what follows; repeatable")
    parser.add_argument("-r", "--resume", nargs="?", const="", metavar="RUN", help="go on with an interrupted run")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")
    parser.add_argument("-p", "--print", action="store_true", help="for programs: no questions, one result at the end")
    parser.add_argument(
        "--output-format",
        choices=["text", "json", "stream-json"],
        default="text",
        help="with -p: the answer, one object, or every event as a line (default text)",
    )
    parser.add_argument("--json-schema", metavar="F", help="with -p: the result must fit this JSON schema")


def approve_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the run (default: the newest that waits)")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve all of it")
    answer.add_argument("--reject", metavar="REASON", help="reject it and say why")
    answer.add_argument("--hunks", metavar="N,…", help="approve these hunks only")
    answer.add_argument("--edit", action="store_true", help="edit the patch in $EDITOR and approve that")
    answer.add_argument("--patch", metavar="FILE", help="approve the patch as it is edited in this file; '-' for stdin")
    parser.add_argument("--full", action="store_true", help="show all of what waits, however long")
    parser.add_argument("--digest", metavar="SHA", help="refuse if what waits is not exactly this")
