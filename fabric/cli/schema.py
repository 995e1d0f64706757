"""`fabric schema`: the JSON Schema of scenario files."""

from __future__ import annotations

import argparse
from typing import Any

from fabric.cli.common import DONE

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("schema", help="print the JSON Schema of scenario files")
    parser.set_defaults(command=_schema)


def _schema(options: argparse.Namespace) -> int:
    import json

    from fabric.scenario import json_schema

    print(json.dumps(json_schema(), indent=2))
    return DONE
