"""The inventory finds a label set's service, and names every fault of its file."""

import pytest

from bot.errors import ConfigError
from bot.inventory import load_inventory

GOOD = """
nodes:
  - {name: gpu-1, url: "http://127.0.0.1:9477"}
services:
  - {name: translate-api, nodes: [gpu-1], depends_on: [tokenizer], selectors: {job: translate}}
  - {name: other}
"""


def write(tmp_path, text):
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    return path


def test_the_label_service_comes_before_the_selectors(tmp_path):
    inventory = load_inventory(write(tmp_path, GOOD))
    assert inventory.service_of({"service": "other", "job": "translate"}).name == "other"
    assert inventory.service_of({"job": "translate", "x": "y"}).name == "translate-api"
    assert inventory.service_of({"job": "unknown"}) is None


def test_a_service_without_selectors_is_matched_by_its_name(tmp_path):
    inventory = load_inventory(write(tmp_path, GOOD))
    assert inventory.services["other"].matchers == {"service": "other"}
    assert [node.name for node in inventory.nodes_of("translate-api")] == ["gpu-1"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("nodes: [", "cannot be read", id="no-yaml"),
        pytest.param("nodes: [{url: x}]", "nodes.0.name", id="no-name"),
        pytest.param("servces: []", "servces", id="typo"),
        pytest.param("services: [{name: a, nodes: [b]}]", "'b' is not among", id="unknown-node"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path, text, says):
    with pytest.raises(ConfigError, match="RCA_NODES") as caught:
        load_inventory(write(tmp_path, text))
    assert says in str(caught.value)
