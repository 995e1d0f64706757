"""`fabric validate`: runs of the HPCC simulator repeated and compared."""

from __future__ import annotations

import argparse
from typing import Any

from fabric.cli.common import DONE, MISSED, out_path, watch

__all__ = ["add"]


def add(commands: Any) -> None:
    parser = commands.add_parser("validate", help="repeat runs of the HPCC simulator and compare")
    parser.add_argument("directory", metavar="DIR", help="reference runs: index.csv and a folder a run")
    parser.add_argument("--only", metavar="PATTERN", default="*", help='names of runs, such as "S2_*"')
    parser.add_argument("--seeds", type=int, metavar="N", default=20, help="of drawn marks (default: 20)")
    parser.add_argument(
        "--native-only", action="store_true", help="leave out the readable engine, which is slow"
    )
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="write the tables there too: a new file, or a page with marks for them (docs/validation.md)",
    )
    parser.add_argument("--pictures", metavar="DIR", help="draw time series there; nothing is graded then")
    parser.add_argument("--quiet", action="store_true", help="print only what is outside its grade")
    parser.set_defaults(command=_validate)


def _validate(options: argparse.Namespace) -> int:
    from fabric.formats.words import read_text
    from fabric.io.files import write_whole
    from fabric.validation import check_page, validate

    page_file, folder = out_path(options, "markdown"), out_path(options, "pictures")
    if folder is not None:
        from fabric.validation import pictures

        for name, image in pictures(options.directory, only=options.only):
            write_whole(folder / name, image)
            print(folder / name, flush=True)
        return DONE
    page = read_text(page_file) if page_file is not None and page_file.is_file() else ""
    check_page(page, name=str(page_file))
    report = validate(
        options.directory,
        only=options.only,
        seeds=options.seeds,
        readable=not options.native_only,
        watch=(lambda name: None) if options.quiet else watch,
    )
    watch("")
    if page_file is not None:
        write_whole(page_file, report.markdown_in(page).encode())
    print(report.text(missed_only=options.quiet))
    return MISSED if report.missed else DONE
