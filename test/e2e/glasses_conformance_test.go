//go:build unix

package e2e

import (
	"bufio"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	played "github.com/service-dev/service/glasses/device"
)

// phoneApp is an app on a phone that acts as the glasses with the service's own device, as the simulator page does.
type phoneApp struct {
	device *played.Device
	begin  time.Time
	bend   func(*glasses.Frame) // modifies the frames that it sends
}

// serve keeps the phone attached until the session ends.
func (p *phoneApp) serve(ctx context.Context, url string) {
	since := ""
	for ctx.Err() == nil {
		header := http.Header{"Origin": {"https://phone.example"}}
		ws, _, err := websocket.Dial(ctx, url+since, &websocket.DialOptions{HTTPHeader: header})
		if err != nil {
			return
		}
		if since = "?since=57"; p.attached(ctx, ws) == glasses.CloseSessionOver {
			return
		}
	}
}

// attached acts as the glasses until the connection ends.
func (p *phoneApp) attached(ctx context.Context, ws *websocket.Conn) websocket.StatusCode {
	defer ws.CloseNow()
	frames, ended := make(chan glasses.Frame), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			_, data, err := ws.Read(ctx)
			if err != nil {
				ended <- err
				return
			}
			if f, err := glasses.Parse(data); err == nil && (glasses.IsCommand(f.Type) || glasses.IsControl(f.Type)) {
				select {
				case frames <- f:
				case <-ctx.Done():
				}
			}
		}
	}()
	for {
		wait := time.Hour
		if at, ok := p.device.Next(); ok {
			wait = time.Until(p.begin.Add(time.Duration(at) * time.Millisecond))
		}
		timer := time.NewTimer(wait)
		select {
		case f := <-frames:
			p.device.Handle(p.now(), f, nil)
		case <-timer.C:
			p.device.Tick(p.now())
		case err := <-ended:
			timer.Stop()
			return websocket.CloseStatus(err)
		}
		timer.Stop()
		p.settle(ctx, ws)
	}
}

func (p *phoneApp) now() int64 { return time.Since(p.begin).Milliseconds() }

func (p *phoneApp) settle(ctx context.Context, ws *websocket.Conn) {
	for outs := p.device.Take(); len(outs) > 0; outs = p.device.Take() {
		for _, o := range outs {
			if o.Ask != nil {
				if o.Ask.Kind == played.AskChunk {
					silence := make([]byte, o.Ask.SampleRate/10*2)
					p.device.Answer(p.now(), o.Ask.ID, played.Material{Bytes: silence}, nil)
				}
				continue
			}
			p.bend(&o.Frame)
			kind := websocket.MessageText
			data, _ := o.Frame.Encode()
			if o.Body != nil {
				kind = websocket.MessageBinary
				data, _ = glasses.EncodeBinary(o.Frame, o.Body)
			}
			_ = ws.Write(ctx, kind, data)
		}
	}
}

// A phone that acts as the glasses passes every rule of the protocol. For a phone that breaks a rule, the check
// reports the rule.
func TestConformance_JudgesAPhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for name, c := range map[string]struct {
		bend func(*glasses.Frame)
		code int
		want string
	}{
		"good": {func(*glasses.Frame) {}, 0, "rules passed."},
		"one without battery events": {func(f *glasses.Frame) {
			if f.Type == glasses.TypeBattery {
				f.Type = "com.example.battery"
			}
		}, 1, "FAIL  sim.state changes the state with an event, or is unsupported (Acting as the glasses): " +
			"sim.state returned ok, but no battery event arrived within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			model, _ := glasses.Model("even_g2")
			cmd := exec.Command(filepath.Join(w.bin, "servicectl"), "glasses", "conformance", "--model", model.ID)
			cmd.Env = w.env
			var out strings.Builder
			cmd.Stdout = &out
			where, err := cmd.StderrPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(where).ReadString('\n')
			at := strings.Index(line, "ws://")
			if err != nil || at < 0 {
				t.Fatalf("got %q (error %v), want where to attach", line, err)
			}
			phone := &phoneApp{device: played.New(model, played.Options{}), begin: time.Now(), bend: c.bend}
			phone.serve(t.Context(), strings.TrimSpace(line[at:]))
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("got the exit code %d, want %d and %q\n%s", got, c.code, c.want, out.String())
			}
		})
	}
}
