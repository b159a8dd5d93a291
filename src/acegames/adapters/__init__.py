"""Games in from other libraries, policies and shields out to them.

Each module needs one optional package, imported when it is used; without it, MissingExtra says what
to install.
"""
