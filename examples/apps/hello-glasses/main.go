// Command hello-glasses is an example app: it shows a line of text on the glasses and counts the taps on it.
//
//	hello-glasses -endpoint ws://localhost:41234/api/sessions/ses_.../app -token-file path/to/token
//
// Like your own app, it imports no package of this repository: the frames are plain JSON over a WebSocket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

func main() {
	endpoint := flag.String("endpoint", "", "the session's app endpoint (ws:// or wss://)")
	tokenFile := flag.String("token-file", "", "path of the file with the session secret")
	flag.Parse()
	if *endpoint == "" || *tokenFile == "" {
		fmt.Fprintln(os.Stderr, "hello-glasses: -endpoint and -token-file are required; createSimulatorSession returns both")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newApp(*endpoint, *tokenFile).run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hello-glasses:", err)
		os.Exit(1)
	}
	fmt.Println("bye")
}

const (
	firstPause   = 300 * time.Millisecond
	longestPause = 10 * time.Second
)

// run keeps the app connected until ctx ends or the service reports that reconnecting is useless.
func (a *app) run(ctx context.Context) error {
	pause := firstPause
	for {
		before := time.Now()
		err := a.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if final(err) {
			return err
		}
		if time.Since(before) > longestPause {
			pause = firstPause
		}
		fmt.Printf("not connected (%v), trying again in %v\n", err, pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(pause*2, longestPause)
	}
}

// final reports whether the service refused the app permanently: invalid hello, wrong secret or closed session.
func final(err error) bool {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return true
	}
	switch websocket.CloseStatus(err) {
	case 4400, 4401, 4410:
		return true
	}
	return false
}
