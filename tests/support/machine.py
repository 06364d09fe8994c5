"""What a command says to machines."""
import json, os, itertools, hashlib
from pathlib import Path
def data(stdout):
    found = json.loads(stdout)
    p=Path("/tmp/h/rec"); p.mkdir(exist_ok=True)
    (p/(str(found["command"]).replace(" ",".")+"-"+hashlib.md5(stdout.encode()).hexdigest()[:8]+".json")).write_text(stdout)
    return found["data"]
