// Calls a service with the client that openapi-generator made for Go: `main BASE_URL`, with API_KEY in the environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	umpire "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func question() *umpire.DecisionRequest {
	return umpire.NewDecisionRequest("minilm-l6", "I was charged twice for my order", "Which team should handle this?")
}

func check(holds bool, found ...interface{}) {
	if !holds {
		log.Fatal(found...)
	}
}

func main() {
	configuration := umpire.NewConfiguration()
	configuration.Servers = umpire.ServerConfigurations{{URL: os.Args[1]}}
	client := umpire.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), umpire.ContextAccessToken, os.Getenv("API_KEY"))
	decide := client.DecisionsAPI.CreateDecision
	choices := []string{"shipping", "billing", "technical support"}

	inline := question()
	inline.SetChoices(choices)
	decision, _, err := decide(ctx).DecisionRequest(*inline).Execute()
	check(err == nil, err)
	check(decision.Output.Choice == "billing" && decision.Output.Probabilities["billing"] == decision.Output.Confidence, decision)
	_, _, err = decide(ctx).DecisionRequest(*question()).Execute()
	var refused *umpire.GenericOpenAPIError
	check(errors.As(err, &refused) && strings.Contains(string(refused.Body()), "choices_or_catalog"), err)
	_, _, err = client.ModelsAPI.ListModels(ctx).Execute()
	check(err == nil, err)
	created, _, err := client.CatalogsAPI.CreateCatalog(ctx).CatalogRequest(*umpire.NewCatalogRequest("ogg", "minilm-l6", choices)).Execute()
	check(err == nil, err)
	check(strings.Join(created.Choices, ",") == strings.Join(choices, ","), created)
	stored := question()
	stored.SetCatalog("ogg")
	decision, _, err = decide(ctx).DecisionRequest(*stored).Execute()
	check(err == nil && decision.Output.Choice == "billing", err, decision)
	_, err = client.CatalogsAPI.DeleteCatalog(ctx, "ogg").Execute()
	check(err == nil, err)
	fmt.Println("openapi-generator, Go: generated, compiled, and called")
}
