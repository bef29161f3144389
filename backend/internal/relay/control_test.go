package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

func dialRaw(t *testing.T, url string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

type outcome struct {
	result json.RawMessage
	err    error
}

func (n *node) control(ctx context.Context, typ, payload string, media []byte) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := n.Control(ctx, testID, typ, json.RawMessage(payload), media)
		done <- outcome{result, err}
	}()
	return done
}

func TestControl(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{ControlWait: 200 * time.Millisecond})
	if o := <-n.control(t.Context(), "sim.state", `{}`, nil); !errors.Is(o.err, sessions.ErrNoGlasses) {
		t.Errorf("without a page: got %v, want ErrNoGlasses", o.err)
	}
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	done := n.control(t.Context(), "sim.input", `{"kind":"tap","x":1,"y":2,"later":3}`, nil)
	f := page.want("sim.input", nil)
	if !strings.HasPrefix(f.ID, "ctl-") || !strings.Contains(string(f.Payload), `"later":3`) {
		t.Errorf("the page received %+v, want a control frame with the unknown field", f)
	}
	page.send("input", "g1", `{"kind":"tap","x":1,"y":2}`)
	page.send("result", f.ID, `{"ok":true,"state":{"worn":true},"new":1}`)
	if o := <-done; o.err != nil || string(o.result) != `{"ok":true,"state":{"worn":true},"new":1}` {
		t.Errorf("result %s, %v", o.result, o.err)
	}
	page.wantID("ack", f.ID, nil)
	app.wantID("input", "g1", nil)

	done = n.control(t.Context(), "sim.camera", `{}`, []byte("picture"))
	header, body, err := glasses.ParseBinary(page.wantBlob())
	if err != nil || string(body) != "picture" || header.Type != "sim.camera" {
		t.Errorf("the page received %+v %q, error %v; want sim.camera with the picture", header, body, err)
	}
	page.send("result", header.ID, `{"error":{"code":"unsupported","message":"no camera"}}`)
	if o := <-done; o.err != nil || !strings.Contains(string(o.result), "no camera") {
		t.Errorf("got %s, error %v; want the error from the glasses as the result", o.result, o.err)
	}

	for typ, payload := range map[string]string{"sim.input": `{"kind":"wink"}`, "display.show": `{}`,
		"sim.state": `not json`, "": `{}`} {
		o := <-n.control(t.Context(), typ, payload, nil)
		res, err := glasses.ParseResult(o.result)
		if o.err != nil || err != nil || res.Error == nil {
			t.Errorf("%s %s: %s, %v", typ, payload, o.result, o.err)
		}
	}
	if o := <-n.control(t.Context(), "sim.state", `{}`, nil); !errors.Is(o.err, sessions.ErrNoAnswer) {
		t.Errorf("a page that does not answer: got %v, want ErrNoAnswer", o.err)
	}
	done = n.control(t.Context(), "sim.motion", `{}`, nil)
	page.want("sim.motion", nil)
	_ = page.ws.CloseNow()
	if o := <-done; !errors.Is(o.err, sessions.ErrNoGlasses) {
		t.Errorf("a page that leaves: got %v, want ErrNoGlasses", o.err)
	}
	n.stop()
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	for _, e := range rows {
		if strings.HasPrefix(e.ID, "ctl-") || strings.HasPrefix(e.Type, "sim.") {
			t.Errorf("the log contains a control frame: %+v", e)
		}
	}
}

// Only the page that acts as the glasses receives control frames.
func TestControl_AsksThePlayer(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	mirror, _ := n.page(t, "")
	page, _ := n.page(t, "")
	done := n.control(t.Context(), "sim.state", `{}`, nil)
	page.send("result", page.want("sim.state", nil).ID, `{"ok":true}`)
	if o := <-done; o.err != nil {
		t.Error(o.err)
	}
	page.send("input", "g1", `{"kind":"tap"}`)
	for {
		f, err := mirror.next()
		if err != nil || f.Type == "sim.state" {
			t.Fatalf("the mirror received %+v, error %v; want no control frame", f, err)
		}
		if f.Type == "row" && strings.Contains(string(f.Payload), `"g1"`) {
			return
		}
	}
}

func TestWatch_IsNotifiedOfRows(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	woken, stop, err := n.Watch("ada", testID)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	select {
	case <-woken:
		t.Error("woken although no row was committed")
	default:
	}
	n.app(t, "")
	await(t, woken)
	again, stopAgain, err := n.Watch("ada", testID)
	if err != nil {
		t.Fatal(err)
	}
	defer stopAgain()
	n.stop()
	await(t, again)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("the watcher was not woken")
	}
}

// An account that waits for events as often as allowed leaves capacity for others.
func TestWatch_LimitsWatchers(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	var stops []func()
	watch := func(account string) error {
		_, stop, err := n.Watch(account, testID)
		if err == nil {
			stops = append(stops, stop)
		}
		return err
	}
	for account := range 20 {
		for range 100 {
			if err := watch(strconv.Itoa(account)); err != nil {
				t.Fatal(err)
			}
		}
		if err := watch(strconv.Itoa(account)); !errors.Is(err, sessions.ErrTooManyWaiters) {
			t.Errorf("after 100 watchers of an account: got %v, want ErrTooManyWaiters", err)
		}
	}
	if err := watch("another"); !errors.Is(err, sessions.ErrTooManyWaiters) {
		t.Errorf("after 2000 watchers: got %v, want ErrTooManyWaiters", err)
	}
	for _, stop := range stops {
		stop()
	}
	if err := watch("another"); err != nil {
		t.Error(err)
	}
}
