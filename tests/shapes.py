"""The checker of annotations at run time: `make test-shapes`."""

from beartype import BeartypeConf, beartype

# PEP 484: an int may stand for a float.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
