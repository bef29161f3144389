package supervised

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

func TestRun_ReturnsTheErrorOfAProgramThatEndsByItself(t *testing.T) {
	want := errors.New("broken")
	if err := Run(t.Context(), "test", func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if err := Run(t.Context(), "test", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestRun_WaitsForTheProgramToDrain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	drained := false
	cancel()
	err := Run(ctx, "test", func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond)
		drained = true
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !drained {
		t.Errorf("drained: %v, got error %v, want context.Canceled", drained, err)
	}
}

// TestProgram_EndsWithStop calls the service interface like the Windows Service Control Manager.
func TestProgram_EndsWithStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	want := errors.New("drain")
	p := &program{ctx: ctx, cancel: cancel, done: make(chan struct{}), f: func(ctx context.Context) error {
		<-ctx.Done()
		return want
	}}
	if err := p.Start(nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
		t.Fatal("the program ended before Stop")
	case <-time.After(20 * time.Millisecond):
	}
	if err := p.Stop(nil); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestOutput_IsTheGivenWriterWithoutServiceManager(t *testing.T) {
	var b bytes.Buffer
	if w := Output("test", &b); w != &b {
		t.Errorf("got writer %T, want the given one", w)
	}
}
