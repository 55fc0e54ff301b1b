"""A decision over gRPC with grpcio, from the protos, and what an error says.

    python decide.py HOST:PORT [CA_FILE]

Copy this file and the folder proto/ to where you want them, and beside them:

    pip install grpcio-status grpcio-tools
    python -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. proto/umpire/v1/*.proto proto/buf/validate/*.proto

Google's protos come with grpcio-status, as for all other libraries that use them: generate umpire/ and buf/ alone, and buf/ not where protovalidate is
installed. With a CA file the connection is TLS, with
UMPIRE_KEY in the environment the call carries the key.
"""

import json
import os
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
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


def error_info(error):
    """The reason of an error, such as AUTHENTICATION_REQUIRED, and the field at fault; None for one that no server sent."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info
    return None


def main():
    key = os.environ.get("UMPIRE_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with open_channel(*sys.argv[1:3]) as channel:
        decisions = decision_service_pb2_grpc.DecisionServiceStub(channel)
        try:
            response = decisions.CreateDecision(
                decision_service_pb2.CreateDecisionRequest(
                    model="umpire-mini",
                    input="I was charged twice for my order",
                    instruction="Which team should handle this?",
                    choices=[
                        "billing: invoices, charges, refunds",
                        "shipping: parcels and delivery",
                        "technical support: errors and crashes",
                    ],
                ),
                timeout=5,
                metadata=metadata,
            )
        except grpc.RpcError as error:
            info = error_info(error)
            reason, param = (info.reason, info.metadata.get("param", "")) if info else ("", "")
            # By the request's id the operator finds it: in the initial metadata, which a refusal without a message has at its end.
            metadata = {**dict(error.initial_metadata() or ()), **dict(error.trailing_metadata() or ())}
            request_id = metadata.get("x-request-id", "")
            sys.exit(f"{error.code().name} {reason} {param} {request_id}: {error.details()}")
    decision = response.decision
    print(decision.output.choice, decision.output.confidence, decision.model)


if __name__ == "__main__":
    main()
