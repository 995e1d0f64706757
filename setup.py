"""Builds the one extension, `fabric._core`. Everything else is in `pyproject.toml`.

Three switches, each an environment variable set to 1:

* ``FABRIC_DEBUG``: bounds checks, assertions of the engine's invariants, no optimisation to speak of;
* ``FABRIC_SANITIZE``: AddressSanitizer and UndefinedBehaviorSanitizer (preload the runtimes to import it);
* ``FABRIC_COVERAGE``: line tracing for coverage.py, and gcov's instrumentation.
"""

import os
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup


def switched_on(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


DEBUG, SANITIZE, COVERAGE = map(switched_on, ("FABRIC_DEBUG", "FABRIC_SANITIZE", "FABRIC_COVERAGE"))

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "overflowcheck": False,
    "cdivision": True,
    "embedsignature": True,
    "auto_pickle": False,
    "autotestdict": False,
    "freethreading_compatible": False,
    "linetrace": COVERAGE,
}

# Floating point must give the same bits everywhere: no contraction, no reassociation.
compile_args = ["-std=c11", "-ffp-contract=off", "-Wall", "-Wno-unused-function"]
link_args: list[str] = []
macros = [("FABRIC_CHECKS", "1" if DEBUG or SANITIZE else "0")]
# Vectorised copies of frames that were just written field by field defeat store forwarding: measured
# 10 % slower at 1,024 hosts, so vectorisation is off. GCC's bound for inlining leaves the start of a frame
# out of line, which costs 4 % of all instructions; other compilers have bounds of their own.
OPTIMISED = ["-O2", "-fno-tree-vectorize"]
if "gcc" in os.path.basename(os.environ.get("CC", sysconfig.get_config_var("CC") or "")):
    OPTIMISED.append("--param=max-inline-insns-single=100")
compile_args += ["-O1", "-g"] if DEBUG or SANITIZE or COVERAGE else OPTIMISED
if SANITIZE:
    flags = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
    compile_args += flags
    link_args += flags
if COVERAGE:
    macros.append(("CYTHON_TRACE_NOGIL", "1"))
    compile_args.append("--coverage")
    link_args.append("--coverage")

# A build with other switches than the one before must not take anything over from it.
stamp = Path("build", "switches.txt")
switches = f"debug={DEBUG} sanitize={SANITIZE} coverage={COVERAGE}"
changed = not stamp.exists() or stamp.read_text() != switches

setup(
    options={"build_ext": {"force": changed}},
    ext_modules=cythonize(
        [
            Extension(
                "fabric._core",
                ["fabric/_core.pyx"],
                extra_compile_args=compile_args,
                extra_link_args=link_args,
                define_macros=macros,
            )
        ],
        compiler_directives=DIRECTIVES,
        force=changed,
    ),
)
stamp.parent.mkdir(exist_ok=True)
stamp.write_text(switches)
