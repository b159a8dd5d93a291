"""What the tests inherit from whoever started them, and hand on to every process that they start: made the same everywhere."""

import os
import signal


def settle():
    """Give this process the signals and the umask of an ordinary shell.

    Under `nohup` and in background jobs signals are ignored or held back, and so they would be in whatever is started from here.
    """
    usual = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGCHLD": signal.SIG_DFL}
    for number, handler in ((getattr(signal, name, None), handler) for name, handler in usual.items()):
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
