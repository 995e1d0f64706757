"""A small scenario for tests of specs."""

from __future__ import annotations

from fabric.spec import Incast, Scenario, SingleSwitch

__all__ = ["scenario"]


def scenario(**parts):
    """A small scenario with some parts replaced."""
    small = {"topology": SingleSwitch(hosts=4), "traffic": [Incast(senders=3, size="1MB")]}
    return Scenario(**small | parts)
