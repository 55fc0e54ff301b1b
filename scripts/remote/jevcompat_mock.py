"""Runs jevcompat's mock of a System One server, whose faults can be changed while it runs: each line of standard input
is {"faults": [names], "busy_every": n}. The arguments are the port and, if the server wants one, the key.
"""

import json
import sys
import threading

from jevcompat.mock import FAULTS, MockConfig, make_server

config = MockConfig(key=sys.argv[2] if len(sys.argv) > 2 else None)
server = make_server(config, port=int(sys.argv[1]))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps(list(FAULTS)), flush=True)
for line in sys.stdin:
    told = json.loads(line)
    config.faults = frozenset(told["faults"])
    config.busy_every = told["busy_every"]
    config.requests = 0
    print("done", flush=True)
