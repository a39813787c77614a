"""How names and places are compared, by queries and by the indexes that serve them."""

from typing import Final

from pymongo.collation import Collation

LOOSE: Final = Collation("en", strength=1)
"""Neither case nor accents count."""
