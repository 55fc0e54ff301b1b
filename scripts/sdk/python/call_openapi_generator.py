"""Calls a service with openapi-generator's client for Python: `call_openapi_generator.py BASE_URL`, with API_KEY in
the environment.
"""

import os
import sys

from umpire_client import (
    ApiClient,
    CatalogRequest,
    CatalogsApi,
    Configuration,
    DecisionRequest,
    DecisionsApi,
    ModelsApi,
)
from umpire_client.exceptions import BadRequestException

client = ApiClient(Configuration(host=sys.argv[1], access_token=os.environ["API_KEY"]))
question = {
    "model": "minilm-l6",
    "input": "I was charged twice for my order",
    "instruction": "Which team should handle this?",
}
choices = ["shipping", "billing", "technical support"]

decision = DecisionsApi(client).create_decision(DecisionRequest(**question, choices=choices))
assert decision.output.choice == "billing", decision
assert decision.output.probabilities["billing"] == decision.output.confidence
try:
    DecisionsApi(client).create_decision(DecisionRequest(**question))
    raise AssertionError("neither choices nor a catalog was taken")
except BadRequestException as error:
    assert error.data.error.code == "choices_or_catalog", error
assert any(model.id == "minilm-l6" for model in ModelsApi(client).list_models().data)
catalogs = CatalogsApi(client)
assert catalogs.create_catalog(CatalogRequest(id="ogp", model="minilm-l6", choices=choices)).choices == choices
assert catalogs.get_catalog("ogp").choices == choices
by_catalog = DecisionsApi(client).create_decision(DecisionRequest(**question, catalog="ogp"))
assert by_catalog.output == decision.output, by_catalog
catalogs.delete_catalog("ogp")
print("openapi-generator, Python: generated and called")
