"""Settings from the environment and from a file. Each mistake has an error message."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from core.errors import ConfigError
from core.settings import settings

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "scl.toml"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "scl.toml"
    monkeypatch.setenv("SCL_SETTINGS", str(path))
    return path


def test_a_file_counts_and_the_environment_goes_before_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (settings().shared, settings().engine, settings().disk_gb) == (False, "local", 20.0)  # without a file
    file.write_text(
        'shared = true\nvisitor_waiting = 2\nadmins = ["a@b.org"]\nadmin_key = "open sesame, do"\nsomething_else = 1\n'
    )
    assert (settings().shared, settings().visitor_waiting, settings().admins) == (True, 2, ("a@b.org",))
    monkeypatch.setenv("SCL_VISITOR_WAITING", "7")
    assert settings().visitor_waiting == 7
    monkeypatch.setenv("SCL_VISITOR_WAITING", "")
    assert settings().visitor_waiting == 2
    monkeypatch.setenv("SCL_VISITOR_WAITING", "7")
    file.write_text("visitor_waiting = 3\nshared = false\n")  # read again without a restart of the server
    assert (settings().shared, settings().visitor_waiting) == (False, 7)


def test_one_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCL_SETTINGS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert not settings().shared
    (tmp_path / "scl.toml").write_text("shared = true")
    assert settings().shared


def test_the_key_of_admins_is_not_printed(file: Path) -> None:
    file.write_text('admin_key = "open sesame, do"')
    assert "sesame" not in repr(settings())
    assert settings().admin_key == SecretStr("open sesame, do")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shared = maybe", "give a TOML file"),
        ("visitor_running = 0", "SCL_VISITOR_RUNNING = 0 cannot be used"),
        ('engine = "ray://head:10001"', "give local, auto, or HOST:PORT of a Ray cluster's head"),
        ('engine = "head"', "give local, auto, or HOST:PORT"),
        ('engine = "head:port"', "give local, auto, or HOST:PORT"),
        ("ray_cpus = -1", "SCL_RAY_CPUS = -1 cannot be used"),
    ],
)
def test_a_mistake_is_named(text: str, words: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        settings()
    assert words in str(refused.value)
    assert "Value error" not in str(refused.value)


def test_the_file_of_a_class_server_is_valid_and_all_of_it_is_known(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib

    monkeypatch.setenv("SCL_SETTINGS", str(DEPLOYED))
    known = settings()
    assert known.shared
    for name, value in tomllib.loads(DEPLOYED.read_text()).items():
        assert getattr(known, name) == value
