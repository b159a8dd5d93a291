"""acegames."""
from acegames.model.game import MarkovGame
from acegames.concepts import CE, CCE
from acegames.errors import *
