"""Questions that were answered before: the answer is given again while all that it rests on stands as it stood."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pawl.app.asking.desk import Desk
from pawl.app.extensions import own_form
from pawl.app.rules import prompt_folders
from pawl.app.workshop import Workshop
from pawl.core import bounded
from pawl.core.errors import StoreError
from pawl.core.memory import KeptAnswer
from pawl.core.run import RunTerms
from pawl.policy.overrides import files_of

_SCRIPT = "scripted:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShelf:
    """The answers to one question. Losing one costs a request, so that trouble with the store is passed over."""

    shop: Workshop
    asked_of: str
    query: str

    @classmethod
    def of(cls, shop: Workshop, terms: RunTerms, text: str, told: Sequence[str]) -> AnswerShelf | None:
        """`told` is what the model is told beside its prompts: with other memories it may answer otherwise.

        None when an extension of the user's says that the answer is not to be kept.
        """
        from pawl.context.answers import normalised

        form = own_form(shop.config, text)
        if form is None:
            return None
        parts = [terms.model, terms.reasoning, shop.config.settings.detail, _script(terms.model), *told]
        extensions = shop.config.tables.extensions
        parts += [*_own_prompts(shop), *(str(extensions[name]) for name in ("answers", "tools") if name in extensions)]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        return cls(shop=shop, asked_of=f"{terms.model} {digest[:16]}", query=normalised(form))

    @property
    def known(self) -> Sequence[KeptAnswer]:
        with suppress(StoreError):
            return self.shop.store.answers.find(self.shop.workspace, self.asked_of, self.query)
        return ()

    def standing(self, desk: Desk) -> KeptAnswer | None:
        """The one that still holds."""
        from pawl.context.answers import still_holds

        for answer in self.known:
            if still_holds(desk.files, answer.rests):
                with suppress(StoreError):
                    self.shop.store.answers.use(answer.id)
                return answer
        return None

    def keep(self, text: str, desk: Desk) -> None:
        """Keeps an answer from these files; one that rests on nothing is not about the code."""
        from pawl.context.answers import are_similar

        rests = desk.files.rests()
        if not rests:
            return
        answer = KeptAnswer(query=self.query, asked_of=self.asked_of, text=text, rests=rests)
        with suppress(StoreError):
            self.shop.store.answers.keep(self.shop.workspace, answer, are_similar)


def _own_prompts(shop: Workshop) -> list[str]:
    """The prompts that the user or the workspace overrides: with others the model may answer otherwise."""
    found = []
    for folder in prompt_folders(shop.config, shop.workspace):
        for _, source, read in files_of(folder, ".md"):
            # One that cannot be read stops the question with its name.
            with suppress(OSError, UnicodeDecodeError):
                found.append(f"{source}\0{read()}")
    return found


def _script(model: str) -> str:
    """What a script says is the model; another text is another one."""
    return _digest(model.removeprefix(_SCRIPT)) if model.startswith(_SCRIPT) else ""


def _digest(path: str) -> str:
    """Of a file's content; empty for one that cannot be read, which is told where it is used."""
    with suppress(OSError):
        return hashlib.sha256(bounded.read_bytes(path, bounded.LARGEST_DATA)).hexdigest()
    return ""
