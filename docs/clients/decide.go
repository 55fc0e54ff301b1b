// A decision over gRPC with grpc-go, from generated code, and what an error says. Copy this file, buf.gen.go.yaml beside it and the folder proto/ into
// your module, generate as buf.gen.go.yaml says, put your module's path into the import below, and
//
//	go run decide.go HOST:PORT [CA_FILE]
//
// grpc-go 1.63 or later. With a CA file the connection is TLS, with UMPIRE_KEY in the environment the call carries the key.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	umpirev1 "example.com/your/module/gen/umpire/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A decision stores nothing, so it may be sent again. The server's pushback says when, or that it is no use.
const serviceConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{
		"name": [{"service": "umpire.v1.DecisionService"}],
		"retryPolicy": {
			"maxAttempts": 4,
			"initialBackoff": "0.1s",
			"maxBackoff": "2s",
			"backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
		}
	}]
}`

// open makes a connection for the whole process; it is kept between calls.
func open(address string, caFile ...string) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if len(caFile) > 0 {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(caFile[0], ""); err != nil {
			return nil, err
		}
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(transport), grpc.WithDefaultServiceConfig(serviceConfig))
}

// describe says what an error is: its code, the reason, such as AUTHENTICATION_REQUIRED, and the field at fault, which an error that no server sent
// lacks, and the request's id, by which the operator finds the request: in the initial metadata, which a refusal without a message has at its end.
func describe(err error, header, trailer metadata.MD) string {
	said := status.Convert(err)
	var reason, param string
	for _, detail := range said.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			reason, param = info.GetReason(), info.GetMetadata()["param"]
		}
	}
	id := strings.Join(metadata.Join(header, trailer).Get("x-request-id"), "")
	return fmt.Sprintf("%s %s %s %s: %s", said.Code(), reason, param, id, said.Message())
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("decide HOST:PORT [CA_FILE]")
	}
	connection, err := open(os.Args[1], os.Args[2:]...)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if key := os.Getenv("UMPIRE_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	var header, trailer metadata.MD
	response, err := umpirev1.NewDecisionServiceClient(connection).CreateDecision(ctx, &umpirev1.CreateDecisionRequest{
		Model:       "umpire-mini",
		Input:       "I was charged twice for my order",
		Instruction: "Which team should handle this?",
		Choices: []string{
			"billing: invoices, charges, refunds",
			"shipping: parcels and delivery",
			"technical support: errors and crashes",
		},
	}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil {
		log.Fatal(describe(err, header, trailer))
	}
	decision := response.GetDecision()
	fmt.Println(decision.GetOutput().GetChoice(), decision.GetOutput().GetConfidence(), decision.GetModel())
}
