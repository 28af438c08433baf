from pathlib import Path

import pytest

from bot.demo.packages import missing_packages, require_packages
from bot.errors import ConfigError


@pytest.fixture
def fonts(tmp_path: Path) -> list[Path]:
    (tmp_path / "NotoSansCJK-Regular.ttc").touch()
    return [tmp_path / "absent", tmp_path]


def test_everything_installed_is_let_through(fonts: list[Path]) -> None:
    require_packages(lambda program: f"/usr/bin/{program}", fonts)


def test_what_is_missing_is_said_in_one_line_to_run(tmp_path: Path) -> None:
    have = {"redis-server": "/usr/bin/redis-server"}

    with pytest.raises(ConfigError) as fault:
        require_packages(have.get, [tmp_path])

    assert str(fault.value) == (
        "packages are missing; run: sudo apt-get install -y --no-install-recommends "
        "prometheus prometheus-alertmanager fonts-noto-cjk"
    )


def test_any_chinese_font_will_do(tmp_path: Path) -> None:
    (tmp_path / "truetype").mkdir()
    (tmp_path / "truetype" / "wqy-zenhei.ttc").touch()

    assert missing_packages(lambda program: program, [tmp_path]) == []
