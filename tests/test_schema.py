"""The schema of scenario files: every field is documented, of a known form, and judged as the parser does."""

from __future__ import annotations

import json
import re

import pytest

from fabric import spec as specs
from fabric.scenario import json_schema
from fabric.spec import Scenario, Spec
from fabric.spec.decode import field_types
from fabric.spec.schema import field_help

ALL_SPECS = [value for value in vars(specs).values() if isinstance(value, type) and issubclass(value, Spec)]


@pytest.mark.parametrize("cls", ALL_SPECS)
def test_every_field_is_documented(cls):
    if cls is Spec:
        return
    assert [name for name, text in field_help(cls).items() if not text] == []


def test_one_flow_of_an_entry_is_documented_as_results_name_it():
    described = json_schema()["$defs"]["Record"]["properties"]["rates"]["description"]
    assert '"incast#3"' in described
    assert "incast[" not in described


@pytest.mark.parametrize("cls", ALL_SPECS)
def test_annotations_are_of_known_forms(cls):
    for name, annotation in field_types(cls).items():
        assert "Any" not in str(annotation) or (cls, name) in (
            (Scenario, "sweep"),
            (specs.Collective, "options"),
        )


def test_schema_describes_every_spec():
    schema = json_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"].endswith("2020-12/schema")
    named = {cls.__name__ for cls in ALL_SPECS} - {"Spec"}
    assert set(schema["$defs"]) == named
    for definition in schema["$defs"].values():
        assert definition["additionalProperties"] is False
        assert definition["description"]
    topology = schema["$defs"]["Scenario"]["properties"]["topology"]
    assert set(topology["discriminator"]["mapping"]) == {
        "single_switch",
        "leaf_spine",
        "clos3",
        "fat_tree",
        "rail_optimized",
        "graph",
    }
    assert schema["$defs"]["Scenario"]["required"] == ["topology", "traffic"]


@pytest.mark.parametrize(
    ("name", "field", "good", "bad"),
    [
        ("Link", "rate", ["400Gbps", "1.6Tbps", "50GB/s", "10 Gbit/s", "5"], ["400Gb", "fast", "-1bps"]),
        ("Link", "gap", ["64MiB", "9kB", "4096", "1e3"], ["64Mb", "64 mb", ""]),
        ("Link", "delay", ["1.5us", "3ps", "1\u00b5s"], ["1m", "s"]),
    ],
)
def test_schema_patterns_agree_with_the_parser(name, field, good, bad):
    text_form = json_schema()["$defs"][name]["properties"][field]["anyOf"][0]
    kind = field_types(getattr(specs, name))[field]
    for text in good:
        assert re.search(text_form["pattern"], text)
        kind(text)
    for text in bad:
        assert not re.search(text_form["pattern"], text)
        with pytest.raises(ValueError, match="not allowed"):
            kind(text)
