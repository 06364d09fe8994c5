"""A process that runs the judge stage: `python judge_child.py RUN SETTINGS JUDGES`, the latter two as JSON."""

import json
import sys
from pathlib import Path

from tests.pools import step

step(Path(sys.argv[1]), "judge", json.loads(sys.argv[2]), json.loads(sys.argv[3]), yes=True)
