"""`config.txt` of the HPCC simulator: words `KEY value ...` in any order.

Here a file becomes a table of words by key; what the keys mean is `fabric.convert.hpcc_config`. Most
keys have one value; the maps of ECN thresholds have a count and then pairs of rate and value, and
`LINK_DOWN` has three. The words after a key that is not known end with its line. Source:
github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/mix/config.txt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fabric.errors import Said, SpecError
from fabric.formats.words import place, probability, rate_bps, read_text, whole

__all__ = ["MAPS", "Settings", "parse_config"]

MAPS = ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP")
LINK_DOWN_WORDS = 3
LONGEST_MAP = 1000
SINGLE = frozenset(
    {
        "ENABLE_QCN",
        "USE_DYNAMIC_PFC_THRESHOLD",
        "PACKET_PAYLOAD_SIZE",
        "TOPOLOGY_FILE",
        "FLOW_FILE",
        "TRACE_FILE",
        "TRACE_OUTPUT_FILE",
        "FCT_OUTPUT_FILE",
        "PFC_OUTPUT_FILE",
        "SIMULATOR_STOP_TIME",
        "CC_MODE",
        "ALPHA_RESUME_INTERVAL",
        "RATE_DECREASE_INTERVAL",
        "CLAMP_TARGET_RATE",
        "RP_TIMER",
        "EWMA_GAIN",
        "FAST_RECOVERY_TIMES",
        "RATE_AI",
        "RATE_HAI",
        "MIN_RATE",
        "DCTCP_RATE_AI",
        "ERROR_RATE_PER_LINK",
        "L2_CHUNK_SIZE",
        "L2_ACK_INTERVAL",
        "L2_BACK_TO_ZERO",
        "HAS_WIN",
        "GLOBAL_T",
        "VAR_WIN",
        "FAST_REACT",
        "U_TARGET",
        "MI_THRESH",
        "INT_MULTI",
        "MULTI_RATE",
        "SAMPLE_FEEDBACK",
        "PINT_LOG_BASE",
        "PINT_PROB",
        "RATE_BOUND",
        "ACK_HIGH_PRIO",
        "ENABLE_TRACE",
        "BUFFER_SIZE",
        "QLEN_MON_FILE",
        "QLEN_MON_START",
        "QLEN_MON_END",
        "DEP_FILE",
    }
)
"""Keys with one value."""


@dataclass(frozen=True)
class Settings:
    """The words of a configuration.

    Attributes
    ----------
    file : str
    words : dict of str to tuple of str
        By key, in the order of the file.
    lines : dict of str to int
    unknown : tuple of str
        Keys that the HPCC simulator does not know.
    last_line : int
    """

    file: str
    words: dict[str, tuple[str, ...]]
    lines: dict[str, int]
    unknown: tuple[str, ...]
    last_line: int

    def where(self, key: str) -> str:
        """How errors name a key."""
        return place(self.file, self.lines.get(key, self.last_line), key)

    def has(self, key: str) -> bool:
        """Whether the file sets a key."""
        return key in self.words

    def text(self, key: str) -> str:
        """The value of a key that must be there."""
        if key not in self.words:
            raise SpecError(self.where(key), Said("nothing"), "this key, which the simulation depends on")
        return self.words[key][0]

    def whole(self, key: str, default: int | None = None, *, low: int = 0, high: int = 2**62) -> int:
        """A whole number."""
        if default is not None and key not in self.words:
            return default
        return whole(self.text(key), where=self.where(key), low=low, high=high)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """0 or 1."""
        return bool(self.whole(key, None if default is None else int(default), high=1))

    def number(self, key: str, default: float | None = None) -> float:
        """A decimal number, 0 or more."""
        if default is not None and key not in self.words:
            return default
        try:
            value = float(self.text(key))
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise SpecError(self.where(key), self.text(key), "a number of 0 or more")
        return value

    def rate(self, key: str) -> int:
        """A rate in bit/s."""
        return rate_bps(self.text(key), where=self.where(key))

    def probability(self, key: str) -> float:
        """A number in [0, 1), 0 if the key is not there."""
        return probability(self.text(key), where=self.where(key)) if key in self.words else 0.0

    def rate_map(self, key: str) -> dict[int, str]:
        """Values by rate in bit/s."""
        self.text(key)
        pairs = self.words[key]
        return {
            rate_bps(rate, where=self.where(key)): value
            for rate, value in zip(pairs[::2], pairs[1::2], strict=True)
        }


def parse_config(file: str | Path) -> Settings:
    """Read a configuration.

    Parameters
    ----------
    file : str or Path

    Returns
    -------
    Settings

    Raises
    ------
    SpecError
        Naming file and line: a key twice or without its values, or no key where one should be.
    """
    rows = [line.split("#", 1)[0].split() for line in read_text(file).splitlines()]
    stream = [(word, number) for number, row in enumerate(rows, start=1) for word in row]
    words: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    unknown: list[str] = []
    at = 0
    while at < len(stream):
        key, line = stream[at]
        where = place(file, line, key)
        if not key.isupper() and not key.replace("_", "").isalnum():
            raise SpecError(place(file, line), key, "a key in capitals")
        if key.replace(".", "").isdigit():
            raise SpecError(place(file, line), key, "a key in capitals: the one before has all its values")
        if key in words:
            raise SpecError(where, key, f"every key once (it also stands on line {lines[key]})")
        first, count = _values(stream, at, where)
        if key not in MAPS and key not in SINGLE and key != "LINK_DOWN":
            unknown.append(key)
        lines[key] = line
        words[key] = tuple(word for word, _ in stream[first : first + count])
        at = first + count
    return Settings(str(file), words, lines, tuple(unknown), max(len(rows), 1))


def _values(stream: list[tuple[str, int]], at: int, where: str) -> tuple[int, int]:
    """Where the values of the key at `at` begin, and how many there are."""
    key, line = stream[at]
    first = at + 1
    if key in MAPS:
        text = stream[first][0] if first < len(stream) else "nothing"
        pairs = whole(text, where=where, low=1, high=LONGEST_MAP)
        first, count = first + 1, 2 * pairs
    elif key in SINGLE or key == "LINK_DOWN":
        count = LINK_DOWN_WORDS if key == "LINK_DOWN" else 1
    else:
        return first, sum(1 for _, number in stream[first:] if number == line)
    missing = [word for word, _ in stream[first : first + count] if word in SINGLE or word in MAPS]
    if missing or first + count > len(stream):
        found = missing[0] if missing else "the end of the file"
        raise SpecError(where, Said(found), f"{count} values" if count > 1 else "a value")
    return first, count
