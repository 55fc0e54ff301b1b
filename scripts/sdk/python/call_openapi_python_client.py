"""Calls a service with the client of openapi-python-client: `call_openapi_python_client.py BASE_URL`, with API_KEY in
the environment.
"""

import os
import sys

from umpire_openapi import AuthenticatedClient, Client
from umpire_openapi.api.catalogs import create_catalog, delete_catalog, get_catalog
from umpire_openapi.api.decisions import create_decision
from umpire_openapi.api.models import list_models
from umpire_openapi.models import CatalogRequest, DecisionRequest, ErrorResponse

base_url = sys.argv[1]
client = AuthenticatedClient(base_url=base_url, token=os.environ["API_KEY"])
question = {
    "model": "minilm-l6",
    "input_": "I was charged twice for my order",
    "instruction": "Which team should handle this?",
}
choices = ["shipping", "billing", "technical support"]

decision = create_decision.sync(client=client, body=DecisionRequest(**question, choices=choices))
assert decision.output.choice == "billing", decision
assert decision.output.probabilities["billing"] == decision.output.confidence
refused = create_decision.sync(client=client, body=DecisionRequest(**question))
assert isinstance(refused, ErrorResponse) and refused.error.code == "choices_or_catalog", refused
assert any(model.id == "minilm-l6" for model in list_models.sync(client=Client(base_url=base_url)).data)
catalog = create_catalog.sync(client=client, body=CatalogRequest(id="opc", model="minilm-l6", choices=choices))
assert catalog.choices == choices, catalog
assert get_catalog.sync("opc", client=client).choices == choices
by_catalog = create_decision.sync(client=client, body=DecisionRequest(**question, catalog="opc"))
assert by_catalog.output == decision.output, by_catalog
assert delete_catalog.sync_detailed("opc", client=client).status_code == 204
print("openapi-python-client: generated and called")
