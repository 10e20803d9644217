"""Taylor mode: programs on truncated power series."""

from effax.transforms.jet.engine import Jet as Jet
from effax.transforms.jet.engine import jet as jet
