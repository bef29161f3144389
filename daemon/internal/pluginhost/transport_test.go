package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

func attach(t *testing.T, h *Host, virtual bool) backend.Glasses {
	t.Helper()
	g, err := h.Attach(t.Context(), LocalSim, backend.TransportOpen{SessionID: "loc_a", DeviceModel: "rayban_display",
		Virtual: virtual})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// ask sends a frame and waits for its result; it calls seen with each frame that arrives before the result.
func ask(t *testing.T, g backend.Glasses, typ, id, payload string, seen func(glasses.Frame)) glasses.Result {
	t.Helper()
	if err := g.Send(fmt.Appendf(nil, `{"v":1,"type":%q,"id":%q,"at":0,"payload":%s}`, typ, id, payload),
		false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		data, binary, err := g.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		parse := glasses.Parse
		if binary {
			parse = func(data []byte) (glasses.Frame, error) { f, _, err := glasses.ParseBinary(data); return f, err }
		}
		f, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if f.ID != id || f.Type != glasses.TypeResult {
			if seen != nil {
				seen(f)
			}
			continue
		}
		r, err := glasses.ParseResult(f.Payload)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func TestGlassesOfManySessions(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	if p := h.Plugins()[2]; p.Name != LocalSim || p.State != Stopped {
		t.Fatalf("before the first attach: %+v, want the adapter stopped", p)
	}
	var sessions sync.WaitGroup
	for i := range 20 {
		g := attach(t, h, true)
		sessions.Go(func() {
			text := fmt.Sprint("session ", i)
			if r := ask(t, g, "display.show", "a", `{"tree":{"type":"text","text":"`+text+`"}}`, nil); !r.OK {
				t.Errorf("%+v", r)
			}
			if r := ask(t, g, "sim.state", "b", "{}", nil); r.View.Tree.Text != text {
				t.Errorf("session %d shows %q, want its own text", i, r.View.Tree.Text)
			}
			media := 0
			r := ask(t, g, "camera.photo", "c", "{}", func(f glasses.Frame) {
				if f.Type == glasses.TypeMedia && f.ID == "c" {
					media++
				}
			})
			if r.Media == nil || media != 1 {
				t.Errorf("photo: %+v, %d media frames; want 1", r, media)
			}
		})
	}
	sessions.Wait()
	if p := h.Plugins()[2]; p.State != Running || !p.Verified || p.PID == 0 || p.Version == "" {
		t.Errorf("%+v", p)
	}
	if c, p := h.Activity(t.Context()); c+p != 0 {
		t.Errorf("activity: %d, %d; want none", c, p)
	}
}

func TestGlassesGoWithTheirAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	g := attach(t, h, true)
	ask(t, g, "display.clear", "a", "{}", nil)
	proc, _ := os.FindProcess(h.Plugins()[2].PID)
	_ = proc.Kill()
	_, _, err := g.Receive(t.Context())
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable || !p.Retryable {
		t.Errorf("%+v", p)
	}
	eventually(t, "Send fails", func() bool {
		err = g.Send([]byte("{}"), false)
		return err != nil
	})
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable {
		t.Errorf("%+v", p)
	}
	var again backend.Glasses
	eventually(t, "the adapter is replaced", func() bool {
		again, err = h.Attach(t.Context(), LocalSim, backend.TransportOpen{DeviceModel: "even_g1", Virtual: true})
		return err == nil
	})
	ask(t, again, "display.clear", "a", "{}", nil)
	_ = again.Close()
	_ = again.Close()
	if _, _, err := again.Receive(t.Context()); code(t, err).Code != problem.CodeAdapterUnavailable {
		t.Errorf("Receive after Close: %v, want adapter_unavailable", err)
	}
	if err := again.Send(nil, false); code(t, err).Code != problem.CodeAdapterUnavailable {
		t.Errorf("Send after Close: %v, want adapter_unavailable", err)
	}
}

func TestAttachIsRefused(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	_, err := h.Attach(t.Context(), HTTP, backend.TransportOpen{})
	if p := code(t, err); p.Code != problem.CodeUnknownTransport || !strings.Contains(p.Message, LocalSim) {
		t.Errorf("attaching to a backend's adapter: %+v, want unknown_transport and the names of the known ones", p)
	}
	_, err = h.Attach(t.Context(), LocalSim, backend.TransportOpen{DeviceModel: "x"})
	if p := code(t, err); p.Code != "invalid_request" {
		t.Errorf("an unknown model: %+v, want invalid_request", p)
	}
	_, err = h.Attach(t.Context(), LocalSim, backend.TransportOpen{DeviceModel: "even_g1", FixturesDir: "/nowhere/at/all"})
	if p := code(t, err); p.Code != "invalid_request" || !strings.Contains(p.Message, "fixtures") {
		t.Errorf("missing fixtures: %+v, want invalid_request", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Attach(ctx, LocalSim, backend.TransportOpen{DeviceModel: "even_g1"}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled Attach: %v, want context.Canceled", err)
	}
	dir := install(t)
	write(t, filepath.Join(dir, program), []byte("another"), 0o755)
	other, _ := serve(t, dir)
	_, err = other.Attach(t.Context(), LocalSim, backend.TransportOpen{DeviceModel: "even_g1"})
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable || !strings.Contains(p.Message, "checksum") {
		t.Errorf("a replaced binary: %+v, want a wrong checksum", p)
	}
}

// TestNobodyReceives checks that the bounded queue fills up if a session's frames are not received, and that Send then
// fails without waiting.
func TestNobodyReceives(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	g := attach(t, h, true)
	var err error
	for range 200_000 {
		if err = g.Send([]byte(`{"v":1,"type":"sim.state","id":"a","at":0}`), false); err != nil {
			break
		}
	}
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable {
		t.Errorf("got %+v, want adapter_unavailable", p)
	}
	other := attach(t, h, true)
	ask(t, other, "display.clear", "a", "{}", nil)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestSpeed measures the performance on which tools depend: the round trip of a command, and a minute of virtual time
// with 100 events.
func TestSpeed(t *testing.T) {
	h, _ := serve(t, install(t))
	begin := time.Now()
	g := attach(t, h, true)
	t.Logf("first attach, including the start of the process: %v", time.Since(begin))
	const n = 2000
	begin = time.Now()
	for i := range n {
		ask(t, g, "display.show", fmt.Sprint("c", i),
			`{"tree":{"type":"column","children":[{"type":"text","text":"Hello"},{"type":"button","id":"ok","text":"OK"}]}}`,
			nil)
	}
	t.Logf("round trip of display.show: %v", time.Since(begin)/n)
	ask(t, g, "motion.start", "m", `{"hz":1}`, nil)
	begin = time.Now()
	steps, events := 0, 0
	for i := range 40 {
		ask(t, g, "sim.input", fmt.Sprint("i", i), `{"kind":"select"}`, func(glasses.Frame) { events++ })
		for to := int64(i+1) * 1500; ; {
			steps++
			r := ask(t, g, "sim.advance", fmt.Sprint("t", steps), fmt.Sprintf(`{"toMs":%d}`, to),
				func(glasses.Frame) { events++ })
			if r.Clock.Reached {
				break
			}
		}
	}
	t.Logf("60 virtual seconds, %d events, %d advances: %v", events, steps, time.Since(begin))
	if events != 100 {
		t.Errorf("%d events, want 100", events)
	}
}
