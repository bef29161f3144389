package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/config"
)

// ends records the order in which parts ended.
type ends struct {
	mu    sync.Mutex
	names []string
}

func (e *ends) note(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names = append(e.names, name)
}

type endingPart struct {
	name string
	*ends
}

func (p endingPart) Serve(ctx context.Context) error {
	<-ctx.Done()
	p.note(p.name)
	return nil
}

// Serve finishes the work that requests leave behind, such as mail, including work from the last request.
func TestServe_FinishesWorkOfRequests(t *testing.T) {
	dir := t.TempDir()
	c := config.Embedded(dir, "http://localhost:1", "http://service-1a2b3c4d.localhost:1",
		[]byte(strings.Repeat("k", 32)), "")
	c.Database = filepath.Join(dir, "service.db")
	a, err := New(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	order, asked, release := &ends{}, make(chan struct{}), make(chan struct{})
	a.last = []server{endingPart{"accounts", order}, endingPart{"mail", order}}
	a.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
		order.note("request")
	})
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- a.Serve(ctx, listener) }()
	go func() {
		res, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		answered <- err
	}()
	<-asked
	stop()
	for { // until draining has begun
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if want := []string{"request", "accounts", "mail"}; !slices.Equal(order.names, want) {
		t.Errorf("parts ended in the order %v, want %v", order.names, want)
	}
}
