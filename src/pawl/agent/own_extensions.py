"""Extensions by a user: evaluators, forms of kept answers, and phrases."""

from __future__ import annotations

import os
from collections.abc import Callable

from pawl.agent.intents import Phrase, own_phrases
from pawl.core.errors import ConfigError, why
from pawl.core.run import Report
from pawl.settings import files as bounded
from pawl.settings.config import Config
from pawl.settings.extensions import extension_settings, loaded, wrong_extension
from pawl.settings.trust import FOLDER, trusted_files

INTENTS = "intents.toml"


def own_evaluator(config: Config) -> Callable[[Report], tuple[int, str]] | None:
    """Scores what came of a run; None where the settings name none."""
    name = extension_settings(config).evaluator if config.tables.extensions else ""
    if not name:
        return None

    def judged(report: Report) -> tuple[int, str]:
        found = loaded("pawl.evaluators", name)
        with found.guarded():
            match found.value(report):
                case (int(score), str(reason)) if 1 <= score <= 5 and score is not True:
                    return score, reason
                case other:
                    what = f"it must give back a score from 1 to 5 and the reason, not {other!r:.100}"
                    raise wrong_extension(found, what)

    return judged


def own_form(config: Config, text: str) -> str | None:
    """The form under which the answer to a question is kept, by an extension; the text itself where there is none.

    None when the answer is not to be kept.
    """
    name = extension_settings(config).answers if config.tables.extensions else ""
    if not name:
        return text
    found = loaded("pawl.answers", name)
    with found.guarded():
        form = found.value(text)
    if form is not None and (not isinstance(form, str) or not form.strip()):
        raise wrong_extension(found, f"it must give back a text or None, not {form!r:.100}")
    return form


def own_phrases_of(config: Config, workspace: str) -> tuple[Phrase, ...]:
    """Ways to ask for something: the user's own, and those of the repository if the user trusts it."""
    file = config.file.parent / INTENTS
    made: tuple[Phrase, ...] = ()
    if file.is_file():
        try:
            made = own_phrases(bounded.read_text(file), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{str(file)!r} cannot be read: {why(error)}", advice="correct or remove it") from error
    theirs = f"{FOLDER}/{INTENTS}"
    trusted = trusted_files(config, workspace) if os.path.lexists(os.path.join(workspace, theirs)) else None
    return made + own_phrases(trusted.text(theirs), theirs) if trusted is not None else made
