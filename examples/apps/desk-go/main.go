// Command desk-go is an example app: a list on the glasses, controlled by touch and speech. desk-ts and desk-py are
// the same app in TypeScript and Python; all three send the same frames in the same order.
//
//	SERVICE_GLASSES_URL=ws://... SERVICE_GLASSES_SECRET_FILE=... desk-go
//
// There is no generated module for Go, so client.go implements the protocol, as apps in other languages can.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	isInterrupted := ctx.Err() != nil
	stop()
	var refused *glassesError
	switch {
	case err == nil, isInterrupted, errors.As(err, &refused) && refused.Code == "closed":
		fmt.Println("bye")
	default:
		fmt.Fprintln(os.Stderr, "desk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	secret, err := os.ReadFile(os.Getenv("SERVICE_GLASSES_SECRET_FILE"))
	if err != nil {
		return fmt.Errorf("read the session secret, SERVICE_GLASSES_SECRET_FILE: %w", err)
	}
	g := connect(ctx, os.Getenv("SERVICE_GLASSES_URL"), string(secret))
	defer g.close()
	return (&desk{glasses: g}).run()
}
