"""What a product of sets of actions inside a set of safe joint actions must satisfy."""

import numpy as np


def check_maximal(mask, sets):
    """The product is safe, no player is without an action, and no action can be added."""
    assert mask[np.ix_(*sets)].all() and all(own.any() for own in sets)
    for i, own in enumerate(sets):
        for a in np.flatnonzero(~own):
            more = [m.copy() for m in sets]
            more[i][a] = True
            assert not mask[np.ix_(*more)].all()
