"""The command line as a whole: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from fabric.cli import bench, check, convert, failures, matrix, plot, run, schema, step, topo, validate
from fabric.cli.common import DONE, INTERRUPTED, REFUSED
from fabric.errors import FabricError
from fabric.units import QuantityError

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name; by default those of this process.
    """
    _open_closed_streams()
    try:
        options = parser().parse_args(arguments)
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except (FabricError, QuantityError) as error:
        return _refuse(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{named}{error.strerror or error}")
    except MemoryError:
        return _refuse("out of memory")
    except KeyboardInterrupt:
        print("fabric: interrupted", file=sys.stderr)
        return INTERRUPTED


def _open_closed_streams() -> None:
    """Where the shell has closed an output (`1>&-`), let it take what is printed and forget it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _refuse(message: str) -> int:
    print("fabric: error:", " ".join(message.split()), file=sys.stderr)
    return REFUSED


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(_refuse(f"{message} (see {self.prog} --help)"))


class _Version(argparse.Action):
    """Prints the version, which is only looked up when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *ignored: Any) -> NoReturn:
        from fabric.version import version

        print(f"fabric {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    whole = _Parser(prog="fabric", description="Packet-level network emulator for AI training clusters.")
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (run, step, bench, plot, topo, check, failures, convert, validate, matrix, schema):
        command.add(commands)
    return whole
