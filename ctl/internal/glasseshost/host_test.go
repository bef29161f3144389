package glasseshost

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// phone is a client that acts as the glasses: it answers every command with ok.
type phone struct {
	withoutOrigin bool
	withoutCursor bool
	neverReturns  bool
	alwaysReturns bool
	isDouble      bool // whether it attaches a second time during the check
}

// serve attaches until the service disconnects the phone, and then once more if the phone is stubborn.
func (p phone) serve(ctx context.Context, url string) {
	since := ""
	for {
		header := http.Header{"Origin": {"https://phone.example"}}
		if p.withoutOrigin {
			header = nil
		}
		ws, answer, err := websocket.Dial(ctx, url+since, &websocket.DialOptions{HTTPHeader: header})
		if err != nil {
			return
		}
		if answer.Body != nil {
			answer.Body.Close()
		}
		code := p.answer(ctx, ws)
		_ = ws.CloseNow()
		if since = "?since=57"; p.withoutCursor {
			since = "?since=3"
		}
		if ctx.Err() != nil || p.neverReturns || code == glasses.CloseSessionOver && !p.alwaysReturns {
			return
		}
	}
}

func (p phone) answer(ctx context.Context, ws *websocket.Conn) websocket.StatusCode {
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err)
		}
		f, err := glasses.Parse(data)
		if err == nil && glasses.IsCommand(f.Type) {
			answer, _ := glasses.New(glasses.TypeResult, f.ID, 0, glasses.Result{OK: true})
			data, _ = answer.Encode()
			if ws.Write(ctx, websocket.MessageText, data) != nil {
				return 0
			}
		}
	}
}

// run checks how a phone attaches and leaves, and that its answers are received. It returns the problems by line.
func (p phone) run(t *testing.T) map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m, _ := glasses.Model("even_g1")
	h, err := Listen(ctx, "ws://127.0.0.1:0", m)
	if err != nil {
		t.Fatal(err)
	}
	h.reconnectTime, h.quietTime = 20*time.Second, time.Second
	if p.neverReturns {
		h.reconnectTime = time.Second
	}
	if p.alwaysReturns {
		h.quietTime = 20 * time.Second
	}
	var client sync.WaitGroup
	client.Go(func() { p.serve(ctx, h.URL) })
	defer client.Wait()
	defer h.Close()
	defer cancel()
	answered := false
	check := func(ctx context.Context, conn conformance.Conn, _ glasses.DeviceModel,
		_ func(conformance.Line)) ([]conformance.Line, error) {
		err := conn.Send(ctx, []byte(`{"v":1,"type":"display.clear","id":"one","at":0,"payload":{}}`))
		answered = strings.Contains(string((<-conn.Messages()).Data), `"id":"one"`)
		if p.isDouble {
			ws, _, err := websocket.Dial(ctx, h.URL, nil) //nolint:bodyclose // the library closes it
			if err != nil {
				return nil, err
			}
			if got := p.answer(ctx, ws); got != glasses.CloseSlow {
				t.Errorf("a second client was closed with %d, want %d", got, glasses.CloseSlow)
			}
		}
		return nil, err
	}
	problems := map[string]string{}
	lines, err := h.Run(ctx, check, func(l conformance.Line) {
		if problems[l.Name] = l.Problem; l.Passed() {
			delete(problems, l.Name)
		}
	})
	if err != nil || !answered || len(lines) < 2 {
		t.Errorf("got %d lines, answered: %v (error %v), want a complete check", len(lines), answered, err)
	}
	for _, l := range lines {
		if !strings.Contains(glasses.Protocol, "\n## "+l.Section+"\n") {
			t.Errorf("%s: PROTOCOL.md has no section %q", l.Name, l.Section)
		}
	}
	return problems
}

func TestRun_ChecksHowTheGlassesComeAndGo(t *testing.T) {
	const attach = "the glasses attach with an origin and a cursor"
	const again, away = "after 1012 they attach again with their cursor", "after 4410 they stay away"
	for name, c := range map[string]struct {
		phone phone
		fails []string
	}{
		"a good phone":      {phone{}, nil},
		"without origin":    {phone{withoutOrigin: true}, []string{attach, again}},
		"another cursor":    {phone{withoutCursor: true}, []string{again}},
		"never back":        {phone{neverReturns: true}, []string{again}},
		"attached twice":    {phone{isDouble: true}, nil},
		"not to get rid of": {phone{alwaysReturns: true}, []string{away}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := c.phone.run(t)
			if len(problems) != len(c.fails) {
				t.Errorf("got %v, want failures of %v", problems, c.fails)
			}
			for _, line := range c.fails {
				if problems[line] == "" {
					t.Errorf("got %v, want a failure of %q", problems, line)
				}
			}
		})
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m, _ := glasses.Model("even_g1")
	h, err := Listen(ctx, "127.0.0.1:0", m)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	defer h.Close()
	if _, err := h.Run(ctx, conformance.Check, func(conformance.Line) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func TestListen_NamesTheAddressThatWasAskedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m, _ := glasses.Model("even_g1")
	h, err := Listen(ctx, "ws://0.0.0.0:0", m)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	h.Close()
	if !strings.HasPrefix(h.URL, "ws://0.0.0.0:") {
		t.Errorf("got %s, want the address with 0.0.0.0", h.URL)
	}
}
