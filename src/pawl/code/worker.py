"""The process that parses: it answers one file after the other, and dies of a file that is too much for it.

What is asked is a line of JSON (the language, the size and, for the rows of the index, the kind and the path) and the
source; what is answered is a line of JSON. It is JSON because the parsers are C: whatever a hostile file has made of
this process, its answer is only data.
"""

from __future__ import annotations

import gc
import json
import resource
import signal
import sys

from pawl.code.languages import FileKind, languages
from pawl.code.parsing import Import, Imported, Parsed, Reference, Use, parse
from pawl.code.rows import IndexPage, read
from pawl.code.tokens import Tokens
from pawl.core.code import Definition, DefinitionKind

READY = b"ready\n"
_KINDS = {kind.value: kind for kind in DefinitionKind}
_USES = {use.value: use for use in Use}


def main(seconds: float, memory_bytes: int) -> None:
    """Serves until there is nothing more to read. The limits are the kernel's: a file over them ends the process."""
    # Parsing makes many objects and no cycles.
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    tokens = Tokens()
    for line in source:
        name, size, *page = json.loads(line)
        data = source.read(size)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if page:
            kind, path = page
            answer = json.dumps(read(IndexPage(path, data, FileKind(kind), name), tokens)).encode()
        else:
            answer = packed(parse(data, languages()[name]))
        answers.write(answer + b"\n")
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.flush()


def packed(parsed: Parsed) -> bytes:
    definitions = [
        (one.kind, one.name, one.qualified, one.start, one.line, one.end, one.depth, one.signature, one.doc)
        for one in parsed.definitions
    ]
    imports = [(one.module, one.line, one.names) for one in parsed.imports]
    return json.dumps([definitions, parsed.references, imports, parsed.complete]).encode()


def unpacked(answer: bytes) -> Parsed:
    definitions, references, imports, complete = json.loads(answer)
    return Parsed(
        definitions=tuple(
            Definition(
                kind=_KINDS[kind],
                name=name,
                qualified=qualified,
                start=start,
                line=line,
                end=end,
                depth=depth,
                signature=signature,
                doc=doc,
            )
            for kind, name, qualified, start, line, end, depth, signature, doc in definitions
        ),
        references=tuple(Reference(name, line, _USES[use]) for name, line, use in references),
        imports=tuple(
            Import(module=module, line=line, names=tuple(Imported(*name) for name in names))
            for module, line, names in imports
        ),
        complete=complete,
    )
