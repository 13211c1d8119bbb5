"""Sessions inside the tests find compiled what the one before has compiled, whatever the environment says."""

import os
import sys

# Hundreds of sessions run in processes of their own: each would compile the whole plugin anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
