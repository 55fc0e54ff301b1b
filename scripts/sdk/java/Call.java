import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.CatalogsApi;
import org.openapitools.client.api.DecisionsApi;
import org.openapitools.client.api.ModelsApi;
import org.openapitools.client.model.CatalogRequest;
import org.openapitools.client.model.Decision;
import org.openapitools.client.model.DecisionRequest;

/** Calls a service with the client of openapi-generator for Java: `Call BASE_URL`, with API_KEY in the environment. */
public final class Call {
  private static DecisionRequest question() {
    return new DecisionRequest()
        .model("minilm-l6")
        .input("I was charged twice for my order")
        .instruction("Which team should handle this?");
  }

  private static void check(boolean holds, Object found) {
    if (!holds) throw new AssertionError(String.valueOf(found));
  }

  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient();
    client.updateBaseUri(args[0]);
    client.setRequestInterceptor(
        builder -> builder.header("Authorization", "Bearer " + System.getenv("API_KEY")));
    List<String> choices = List.of("shipping", "billing", "technical support");

    Decision decision = new DecisionsApi(client).createDecision(question().choices(choices));
    check("billing".equals(decision.getOutput().getChoice()), decision);
    check(decision.getOutput().getProbabilities().get("billing").equals(decision.getOutput().getConfidence()), decision);
    try {
      new DecisionsApi(client).createDecision(question());
      throw new AssertionError("neither choices nor a catalog was taken");
    } catch (ApiException error) {
      check(error.getCode() == 400 && error.getResponseBody().contains("choices_or_catalog"), error.getResponseBody());
    }
    check(new ModelsApi(client).listModels().getData().stream().anyMatch(model -> "minilm-l6".equals(model.getId())), "models");
    CatalogsApi catalogs = new CatalogsApi(client);
    CatalogRequest catalog = new CatalogRequest().id("ogj").model("minilm-l6").choices(choices);
    check(choices.equals(catalogs.createCatalog(catalog).getChoices()), "created");
    check(choices.equals(catalogs.getCatalog("ogj").getChoices()), "read");
    Decision byCatalog = new DecisionsApi(client).createDecision(question().catalog("ogj"));
    check(decision.getOutput().equals(byCatalog.getOutput()), byCatalog);
    catalogs.deleteCatalog("ogj");
    System.out.println("openapi-generator, Java: generated, compiled, and called");
  }
}
