"""Tasks that run one after the other in this process, each when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Held:
    """Something in this process: a block, or what is shared."""

    content: Any

    def fetch(self):
        return self.content


class SerialTasks:
    """Runs each task in this process when it is asked for."""

    workers = nodes = 1

    def __enter__(self):
        return self

    def __exit__(self, kind, error, at):
        pass

    def share(self, content):
        return Held(content)

    put = share

    def run(self, function, shared, what, blocks=(), *, made=1, on_done=None):
        *results, numbers = function(shared.content, what, *(block.fetch() for block in blocks))
        assert len(results) == made
        if on_done is not None:
            on_done(numbers)
        return [Held(content) for content in results]

    def wait(self):
        pass

    finish = wait

    def account(self):
        return ""
