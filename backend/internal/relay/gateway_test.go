package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// gateways issues numbered tokens, or none if there is no model to call.
type gateways struct {
	mu   sync.Mutex
	n    int
	none bool
	err  error
}

func (g *gateways) Gateway(context.Context, string) (*glasses.Gateway, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.none || g.err != nil {
		return nil, g.err
	}
	g.n++
	return &glasses.Gateway{URL: "http://localhost/v1", Token: fmt.Sprint("sgt_", g.n)}, nil
}

func (g *gateways) set(none bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.none, g.err = none, err
}

func TestGateway_RenewsTokensOfAppsThatTakeThem(t *testing.T) {
	m, g := newMemory(), &gateways{}
	var passed atomic.Int64
	n := startNode(t, m, relay.Options{Gateways: g,
		Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	old, w := n.app(t, "")
	if w.Gateway == nil || w.Gateway.Token != "sgt_1" {
		t.Fatalf("welcome: %+v", w.Gateway)
	}
	app, w := n.app(t, `,"gateway":true`)
	page, _ := n.page(t, "")
	passed.Store(int64(glasses.GatewayTokenLife - glasses.GatewayTokenRenew + time.Minute))
	n.Ended("ada", "link-1") // checks the session immediately
	var got glasses.Gateway
	app.want(glasses.TypeGatewayToken, &got)
	if got.Token == w.Gateway.Token || !strings.HasPrefix(got.Token, "sgt_") || got.URL == "" {
		t.Errorf("got %+v after %+v, want a new token", got, w.Gateway)
	}
	// Neither an app that did not request tokens nor a page receives one: the next frame for each is the row.
	n.LogAssistant(t.Context(), testID, glasses.RowToolCalled, glasses.NewToolCalled("add_item", `{"item": "milk"}`))
	row := page.wantRow(glasses.RowToolCalled)
	if string(row.Payload) != `{"name":"add_item","arguments":{"item":"milk"}}` ||
		row.Sender != glasses.SenderService || row.Chip != glasses.ChipVoice {
		t.Errorf("%+v", row)
	}
	app.send(glasses.TypeDisplayClear, "a1", "{}")
	old.find(func(f glasses.Frame) bool {
		if f.Type == glasses.TypeGatewayToken {
			t.Error("an app that does not accept tokens received one")
		}
		return f.Type == glasses.TypeCursor
	}, "a cursor", nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.rows {
		if strings.Contains(string(row.Payload), "sgt_") {
			t.Errorf("the log contains a token: %+v", row)
		}
	}
}

func TestGateway_ComesLater(t *testing.T) {
	m, g := newMemory(), &gateways{none: true}
	n := startNode(t, m, relay.Options{Gateways: g})
	app, w := n.app(t, `,"gateway":true`)
	if w.Gateway != nil {
		t.Fatalf("welcome: %+v", w.Gateway)
	}
	g.set(false, nil)
	n.GatewayChanged(t.Context(), testID)
	app.want(glasses.TypeGatewayToken, nil)

	// If a token could not be stored, a later check sends one.
	g.set(false, errors.New("away"))
	late, w := n.app(t, `,"gateway":true`)
	if w.Gateway != nil {
		t.Fatalf("welcome: %+v", w.Gateway)
	}
	g.set(false, nil)
	n.Ended("ada", "link-1")
	late.want(glasses.TypeGatewayToken, nil)
}

// slowGateway has no model to call when it is first asked, but returns that answer only once it receives from gate.
type slowGateway struct {
	gateways
	asked, gate chan struct{}
	isAsked     atomic.Bool
}

func (g *slowGateway) Gateway(ctx context.Context, id string) (*glasses.Gateway, error) {
	if g.isAsked.CompareAndSwap(false, true) {
		close(g.asked)
		<-g.gate
		return nil, nil
	}
	return g.gateways.Gateway(ctx, id)
}

// An app that receives a token while it attaches, because its session gets a gateway, receives the later ones too.
func TestGateway_ComesWhileAttaching(t *testing.T) {
	g := &slowGateway{asked: make(chan struct{}), gate: make(chan struct{})}
	var passed atomic.Int64
	n := startNode(t, newMemory(), relay.Options{Gateways: g,
		Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	app := n.raw(t)
	app.send("hello", "h1", `{"secret":"right","app":{"name":"Test app"},"gateway":true}`)
	<-g.asked
	n.GatewayChanged(t.Context(), testID)
	close(g.gate)
	app.want(glasses.TypeGatewayToken, nil)
	passed.Store(int64(glasses.GatewayTokenLife - glasses.GatewayTokenRenew + time.Minute))
	n.Ended("ada", "link-1") // checks the session immediately
	app.want(glasses.TypeGatewayToken, nil)
}
