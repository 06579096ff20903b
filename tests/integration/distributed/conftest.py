"""What the tests of several processes share: two ranks side by side, as torchrun would start them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import pytest
from torch.distributed import TCPStore

RANKS = 2


@pytest.fixture
def rendezvous() -> Iterator[list[str]]:
    """The environment that torchrun gives to all ranks, with the store that it keeps for them to meet at."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = ["MASTER_ADDR=127.0.0.1", f"MASTER_PORT={store.port}", "TORCHELASTIC_USE_AGENT_STORE=True"]
    yield [*place, f"WORLD_SIZE={RANKS}"]
    del store


@pytest.fixture
def run_two(server: Any, rendezvous: list[str]) -> Callable[..., list[Any]]:
    """Runs one command line on two ranks; what became of each."""

    def run(*words: object) -> list[Any]:
        done: list[Any] = server.run(
            *([*rendezvous, f"RANK={rank}", f"LOCAL_RANK={rank}", *words] for rank in range(RANKS))
        )
        return done

    return run
