"""A decision over gRPC with grpcio, from the protos.

    python decide.py HOST:PORT [CA_FILE]

With a CA file the connection is TLS, with API_KEY in the environment the call carries the key. Needs grpcio-tools and code generated from the protos,
found on PYTHONPATH:

    python -m grpc_tools.protoc -I proto --python_out=gen_py --grpc_python_out=gen_py \\
        umpire/v1/decision_service.proto google/api/annotations.proto google/api/http.proto
"""

import json
import os
import sys

import grpc

from umpire.v1 import decision_service_pb2, decision_service_pb2_grpc

# A decision stores nothing, so it may be sent again. The server's pushback says when, or that it is no use.
SERVICE_CONFIG = json.dumps(
    {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": [{"service": "umpire.v1.DecisionService"}],
                "retryPolicy": {
                    "maxAttempts": 4,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "2s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
                },
            }
        ],
    }
)


def open_channel(address, ca_file=None):
    options = [("grpc.service_config", SERVICE_CONFIG)]
    if ca_file is None:
        return grpc.insecure_channel(address, options)
    with open(ca_file, "rb") as file:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), options)


def main():
    key = os.environ.get("API_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with open_channel(*sys.argv[1:3]) as channel:
        decisions = decision_service_pb2_grpc.DecisionServiceStub(channel)
        response = decisions.CreateDecision(
            decision_service_pb2.CreateDecisionRequest(
                model="minilm-l6",
                input="I was charged twice for my order",
                instruction="Which team should handle this?",
                choices=["billing", "shipping", "technical support"],
            ),
            timeout=5,
            metadata=metadata,
        )
    decision = response.decision
    print(decision.output.choice, decision.output.confidence, decision.model)


if __name__ == "__main__":
    main()
