"""How threads of a CPU wait for each other; to be said before torch is loaded."""

from __future__ import annotations

from collections.abc import MutableMapping

WAIT_POLICY = "OMP_WAIT_POLICY"
OF_USERS = (WAIT_POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def let_waiting_threads_sleep(environment: MutableMapping[str, str]) -> None:
    """Let threads that wait for others give their core away, unless the user has said how they wait.

    OpenMP (GNU's libgomp in PyTorch's builds for Linux) reads the variable when it is loaded. By default a thread
    that is done spins on its core until the others are, a dozen times in every layer. Where another program has one of
    the cores, the spinning keeps the late thread from running: two-thread training beside one busy neighbour was 4 to 6
    times slower than with threads that sleep.

    Args:
        environment: of this process (``os.environ``) or of one to be started; changed in place.
    """
    if not any(name in environment for name in OF_USERS):
        environment[WAIT_POLICY] = "PASSIVE"
