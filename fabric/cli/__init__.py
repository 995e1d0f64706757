"""The command line: run a scenario, draw a result, look at a network.

::

    fabric run FILE... [--set path=value]... [--sweep path=value,value]... [--seed N] [--out DIR]
                       [--until 5ms] [--engine NAME]
    fabric step FILE [--set path=value]... [--sweep path=value,value]... [--scale N,N] [--seed N] [--out DIR]
    fabric bench FILE [--collective NAME] [--compare ALGORITHM,...] [--ranks N] [-b SIZE] [-e SIZE]
                      [-f FACTOR] [--csv FILE] [--out FILE]
    fabric plot DIR [--kind queues] [--ports PATTERN] [--out FILE]
    fabric topo FILE [--out FILE]
    fabric check FILE... [--routes traffic] [--fail NAME,...]... [--remedy NAME] [--out FILE]
    fabric failures FILE [--cost | --recover | --redundancy | --draw] [--links PATTERN]... [--out FILE]
    fabric convert SOURCE... --out FILE
    fabric validate DIR [--only PATTERN] [--seeds N] [--markdown FILE] [--pictures DIR]
    fabric matrix FILE [--per N] [--collectives direct] [--out FILE] [--array FILE]
    fabric schema

FILE is a scenario, or the files of another simulator (`docs/formats.md`): a topology, flows or a program, and
possibly a configuration. Of `matrix` it is a training job (`docs/training.md`).

Exit codes: 0 done; 1 a validation found something outside its grade, or a checked network can deadlock; 2
something was described wrongly, or a file cannot be read or written, said in one line on standard error;
130 interrupted, after saving what was recorded. Output is written whole or not at all, and a result is
saved before its picture is drawn.
"""

from fabric.cli.main import main

__all__ = ["main"]
