"""Reads envoy.yaml into the messages of Envoy's own protos, which refuse a field that they do not know.

    python scripts/check-deploy/envoy.py deploy/envoy/envoy.yaml

Needs envoy-data-plane and PyYAML.
"""

import importlib
import sys

import yaml

# To read an Any, the library must know its type.
for module in (
    "filters.network.http_connection_manager.v3",
    "filters.http.router.v3",
    "retry.host.previous_hosts.v3",
    "transport_sockets.tls.v3",
    "upstreams.http.v3",
):
    importlib.import_module(f"envoy_data_plane.envoy.extensions.{module}")
from envoy_data_plane.envoy.config.bootstrap.v3 import Bootstrap  # noqa: E402


def read(text):
    """Returns the configuration as Envoy's message. The library raises an error for an unknown field."""
    return Bootstrap.from_dict(yaml.safe_load(text))


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
bootstrap = read(text)
assert bootstrap.static_resources.clusters[0].health_checks
for word in ("connect_timeout", "use_remote_address", "retry_on", "alpn_protocols", "use_downstream_protocol_config"):
    try:
        read(text.replace(word, word + "x"))
    except Exception:  # The library has no common class for these errors.
        continue
    sys.exit(f"a broken configuration was accepted: {word}x")
print("envoy.yaml: ok")
