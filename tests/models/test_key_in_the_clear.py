"""A key that would go to another machine without encryption is told before it is sent."""

from __future__ import annotations

from pathlib import Path

from pawl.models.providers import ModelName
from pawl.models.router import Models, model_config
from pawl.settings.config import load


def test_the_user_is_warned_once_when_the_model_is_opened(tmp_path: Path):
    (tmp_path / "config.toml").write_text(
        '[providers.far]\nwire = "openai"\nbase_url = "http://gpu.lan:8000/v1"\nkey_env = ["FAR_KEY"]\n'
    )
    environment = {"HOME": str(tmp_path), "PAWL_CONFIG": str(tmp_path / "config.toml"), "FAR_KEY": "sk-" + "a" * 20}
    config = load(environment)
    said: list[str] = []
    with Models(model_config(config, environment), warn=said.append) as models:
        models._open(ModelName.parse("far/m", models.config.providers))
    assert len(said) == 1 and "gpu.lan:8000 over http" in said[0]
