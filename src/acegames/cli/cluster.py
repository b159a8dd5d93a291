"""What `check` says of a cluster: options that describe one, and what a solve would take there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from typer import Option

import acegames as ace
from acegames.cli import options as opt
from acegames.cli.words import counted, duration, room
from acegames.errors import InvalidOption, TooLarge

if TYPE_CHECKING:
    from acegames.engines.cluster_forecast import ClusterNeeds

LONG = 86_400.0  # seconds of a solve from which on a cluster is mentioned without being asked for

Nodes = Annotated[
    int | None,
    Option(
        "--nodes", parser=opt.whole(1), metavar="N", help="Say what a solve would take on a cluster of so many nodes."
    ),
]
_CORES = "With --nodes: number of processors of each; by default as many as this machine has."
NodeCores = Annotated[int | None, Option("--node-cores", parser=opt.whole(1), metavar="N", help=_CORES)]
_MEMORY = "With --nodes: memory of each, such as 64GB; by default what is free on this machine."
NodeMemory = Annotated[str | None, Option("--node-memory", metavar="SIZE", help=_MEMORY)]


def check_asked(nodes: int | None, cores: int | None, node_memory: str | None, memory: str | None) -> None:
    """Raise InvalidOption for options that do not go together, before the work."""
    if nodes is None:
        given = {"--node-cores": cores, "--node-memory": node_memory}
        for option in (option for option, value in given.items() if value is not None):
            raise InvalidOption(f"{option}: goes with --nodes, the number of nodes")
    elif memory is not None:
        raise InvalidOption("--memory: is a limit of this machine; with --nodes, --node-memory says what a node has")
    if node_memory is not None and not opt.read_bytes("--node-memory", node_memory):
        raise InvalidOption(f"--node-memory {node_memory}: must be more than 0")


def on_cluster(needs: ace.Estimate, nodes: int | None, cores: int | None, memory: str | None) -> ClusterNeeds | None:
    """Return what a solve would take on the nodes that are asked for; else, where it is too large
    for this machine, on as many machines like this one as it takes; else None.

    Raises:
        TooLarge: the nodes that are asked for have too little memory, and so has this machine.
    """
    if nodes is None:
        return _like_this_machine(needs)
    bytes_each = None if memory is None else opt.read_bytes("--node-memory", memory)
    there = needs.on_cluster(nodes, cores=cores, memory=bytes_each)
    here = opt.free_memory()
    if _too_small(there) and needs.memory > here * (1 if needs.counted else opt.SAMPLED):
        needed = f"solving {opt.size_words(needs)} needs about {room(there.memory)} of memory on each of {counted(nodes, 'node')}"
        alone = f"this machine alone needs about {room(needs.memory)} and has {room(here)}"
        raise TooLarge(f"{needed}, but {short_words(there)}; {alone}")
    return there


def _too_small(there: ClusterNeeds) -> bool:
    """Return whether nodes have too little memory, even if an estimate by sampling is too large."""
    return max(there.memory, there.driver) > there.node_memory * (1 if there.counted else opt.SAMPLED)


def _like_this_machine(needs: ace.Estimate) -> ClusterNeeds | None:
    """Return a cluster that would do where this machine would not, or would take very long."""
    if not needs.pairs or (needs.memory <= opt.free_memory() and needs.seconds <= LONG):
        return None
    least = needs.on_cluster(1).least_nodes
    return None if least is None else needs.on_cluster(max(least, math.ceil(needs.seconds / LONG), 2))


def cluster_words(there: ClusterNeeds, needs: ace.Estimate, *, asked: bool) -> str:
    """Return what a solve would take there, in a sentence or two."""
    kind = f"{counted(there.nodes, 'node')} with {counted(there.cores, 'processor')} and {room(there.node_memory)}"
    if _too_small(there):
        enough = " This machine alone has enough." if needs.memory <= opt.free_memory() else ""
        return f"It does not fit on a cluster of {kind} of memory each: {short_words(there)}.{enough}"
    said = (
        f"On a cluster of {kind} of memory each it takes {duration(there.seconds)}, {_about(there.memory)} of memory on "
        f"each node ({_about(there.store)} of it in Ray's object store) and {_about(there.disk)} of disk that all share."
    )
    if there.driver >= 1e9:
        said += f" The process that asks for the tasks takes {_about(there.driver)} of memory."
    if not there.fits:
        said += f" By this estimate, {short_words(there)}."
    if there.seconds >= needs.seconds and needs.memory <= opt.free_memory():
        said += f" This machine alone is {'faster' if needs.seconds < 0.9 * there.seconds else 'as fast'}."
    elif there.limit != "work":
        said += f" More nodes would hardly be faster: {LIMITS[there.limit]}."
    return said if asked else f"{said} Solve there with --engine ray."


def _about(number: int) -> str:
    return f"about {room(number)}" if number >= 1e9 else "under 1 GB"


LIMITS = {
    "layers": "the layers are solved one after the other",
    "driver": "one program hands out all tasks",
}
"""Why more nodes do not help, by `ClusterNeeds.limit`."""


def short_words(there: ClusterNeeds) -> str:
    """Return what nodes lack."""
    each = f"a node has {room(there.node_memory)}"
    if there.driver > there.node_memory:
        return f"{each}, and {room(there.driver)} are needed where the solve is started"
    if there.least_nodes is None:
        own = room(there.running + there.tables + there.program)
        return f"{each}, and {own} are needed on each however many there are (less with fewer processors)"
    return f"{each}, so at least {counted(there.least_nodes, 'node')} of this kind are needed"
