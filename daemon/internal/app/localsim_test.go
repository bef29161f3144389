//go:build unix

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

// until waits for a matching row of the log.
func (l *locals) until(t *testing.T, id string, since int64, fits func(glasses.Event) bool) glasses.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		page, err := l.Wait(ctx, backend.Target{}, id, since, 100, 10*time.Second)
		if err != nil || ctx.Err() != nil {
			t.Fatalf("no matching row arrived: %v", err)
		}
		for _, raw := range page.Events {
			var e glasses.Event
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			if fits(e) {
				return e
			}
		}
		since = page.Next
	}
}

// If the simulator is killed and then the daemon, the glasses and the app continue in the same state and no row is
// lost.
func TestGlassesOutliveSimulatorAndDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLocals(t, dir)
	o, err := l.StartLocal(t.Context(), caller.Caller{}, session.LocalRequest{Project: "com.example.app"})
	if err != nil {
		t.Fatal(err)
	}
	links := make(chan string, 16)
	on := func(a *testApp, f glasses.Frame) {
		switch f.Type {
		case glasses.TypeLink:
			var p glasses.LinkState
			_ = json.Unmarshal(f.Payload, &p)
			links <- p.State
		case glasses.TypeInput:
			a.ask(glasses.TypeDisplayShow, text("tapped"))
		}
	}
	app := attach(t, o, true, nil, on)
	target := backend.Target{}
	if _, err := l.Control(t.Context(), target, o.SessionID, glasses.SimState,
		glasses.StatePatch{Battery: &glasses.Battery{Level: 33}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Control(t.Context(), target, o.SessionID, glasses.SimInput, glasses.Input{Kind: "tap"},
		nil); err != nil {
		t.Fatal(err)
	}
	shown := l.until(t, o.SessionID, 0, func(e glasses.Event) bool { return e.Kind == glasses.KindResult })
	before, err := l.Display(t.Context(), target, o.SessionID)
	if err != nil || len(before.PNG) == 0 || before.Text()[0] != "tapped" {
		t.Fatalf("%+v, %v", before.Text(), err)
	}
	for _, p := range l.host.Plugins() {
		if p.Name == pluginhost.LocalSim {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	if down, up := <-links, <-links; down != glasses.LinkDisconnected || up != glasses.LinkConnected {
		t.Errorf("links %s, %s", down, up)
	}
	same := func(l *locals) {
		t.Helper()
		after, err := l.Display(t.Context(), target, o.SessionID)
		if err != nil || after.State.Battery.Level != 33 || !bytes.Equal(after.PNG, before.PNG) {
			t.Errorf("after the restart: error %v, battery %d, same picture %v; want battery 33 and the same picture",
				err, after.State.Battery.Level,
				bytes.Equal(after.PNG, before.PNG))
		}
	}
	same(l)
	l.stop()
	<-app.done
	l = startLocals(t, dir)
	// The daemon starts the app server when it starts, before the first client call.
	for again := time.NewTicker(10 * time.Millisecond); ; <-again.C {
		c, err := net.DialTimeout("tcp", strings.Split(o.AppEndpoint, "/")[2], time.Second)
		if err == nil {
			_ = c.Close()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	again := attach(t, o, true, nil, on)
	same(l)
	rows := l.until(t, o.SessionID, shown.Seq, func(e glasses.Event) bool { return e.Type == glasses.RowAppAttached })
	if rows.Seq <= shown.Seq {
		t.Errorf("row %+v", rows)
	}
	again.leave()
}

// Streams are relayed completely and counted in the log.
func TestStreams(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	var mu sync.Mutex
	got := map[string]int{}
	o := startApp(t, l, backend.ClockVirtual, func(a *testApp) {
		a.ask(glasses.TypeAudioStart, glasses.AudioStart{})
		a.ask(glasses.TypeMotionStart, glasses.MotionStart{Hz: 10})
		a.ask(glasses.TypeVideoStart, glasses.VideoStart{FPS: 5, Width: 64})
	}, func(a *testApp, f glasses.Frame) {
		mu.Lock()
		got[f.Type]++
		mu.Unlock()
		if f.Type == glasses.TypeInput {
			a.ask(glasses.TypeAudioStop, struct{}{})
			a.ask(glasses.TypeVideoStop, struct{}{})
			a.ask(glasses.TypeMotionStop, struct{}{})
		}
	})
	if _, settled, err := l.Advance(t.Context(), o.SessionID, 12_000); err != nil || !settled {
		t.Fatal(settled, err)
	}
	if _, err := l.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimInput, glasses.Input{Kind: "tap"},
		nil); err != nil {
		t.Fatal(err)
	}
	page, err := l.Since(t.Context(), backend.Target{}, o.SessionID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var frames = map[string]int{}
	for _, raw := range page.Events {
		var e glasses.Event
		_ = json.Unmarshal(raw, &e)
		if glasses.IsStream(e.Type) {
			t.Errorf("the log contains a frame of a stream: %s", raw)
		}
		if e.Type == glasses.RowStreamCounted {
			var c glasses.StreamCount
			_ = json.Unmarshal(e.Payload, &c)
			frames[c.Type] += int(c.Frames)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for typ, want := range map[string]int{glasses.TypeAudioChunk: 120, glasses.TypeVideoFrame: 60,
		glasses.TypeMotion: 120} {
		if frames[typ] < want-2 || frames[typ] > want+2 || got[typ] != frames[typ] {
			t.Errorf("%s: log counts %d, app received %d; want the same number, about %d", typ, frames[typ], got[typ], want)
		}
	}
}

// Every answer to a control frame and every refusal reaches the agent unchanged.
func TestControlAnswers(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	o, err := l.StartLocal(t.Context(), caller.Caller{},
		session.LocalRequest{Project: "com.example.app", DeviceModel: "even_g1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ     string
		payload any
		media   []byte
		code    string
	}{
		{glasses.SimState, nil, nil, ""},
		{glasses.SimInput, glasses.Input{Kind: "capture"}, nil, glasses.CodeUnsupported},
		{glasses.SimInput, map[string]any{"kind": 7}, nil, glasses.CodeBadPayload},
		{glasses.SimTranscript, glasses.Transcript{Text: "hello", Final: true}, nil, glasses.CodePaused},
		{glasses.SimCamera, nil, []byte("no picture"), glasses.CodeUnsupported},
		{glasses.SimDevice, glasses.DeviceChoice{DeviceModel: "rayban_display"}, nil, ""},
		{glasses.SimCamera, nil, []byte("no picture"), glasses.CodeBadPayload},
	} {
		res, err := l.Control(t.Context(), backend.Target{}, o.SessionID, c.typ, c.payload, c.media)
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		if code := res.Error; (code == nil) != (c.code == "") || code != nil && code.Code != c.code {
			t.Errorf("%s %v: error %+v, want code %q", c.typ, c.payload, res.Error, c.code)
		}
	}
	if s, _ := l.Get(t.Context(), backend.Target{}, o.SessionID); s.DeviceModel != "rayban_display" {
		t.Errorf("the session's device model is %s, want rayban_display", s.DeviceModel)
	}
	for _, typ := range []string{glasses.SimAdvance, "display.show"} {
		if _, err := l.Control(t.Context(), backend.Target{}, o.SessionID, typ, nil, nil); err == nil ||
			!strings.Contains(err.Error(), "not a control frame") {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if _, _, err := l.Advance(t.Context(), o.SessionID, 5); err == nil || !strings.Contains(err.Error(), "cannot be advanced") {
		t.Errorf("Advance in real time: %v, want it refused", err)
	}
}

// playSound sends ms milliseconds of sound for the playback id at 24,000 Hz, in chunks of 100 ms.
func (a *testApp) playSound(id string, ms int) {
	payload, _ := json.Marshal(glasses.PlaybackChunk{Playback: id})
	for ; ms > 0; ms -= 100 {
		a.n++
		chunk, err := glasses.EncodeBinary(glasses.Frame{V: 1, Type: glasses.TypePlaybackChunk, ID: fmt.Sprintf("a-%d", a.n),
			Payload: payload}, make([]byte, glasses.MaxPlaybackChunk))
		if err != nil {
			panic(err)
		}
		_ = a.ws.Write(context.Background(), websocket.MessageBinary, chunk)
	}
}

// Sound plays on the session's clock, and is counted in the log.
func TestPlayback_InVirtualTime(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	sleep := "" // used by the app only
	o := startApp(t, l, backend.ClockVirtual, func(a *testApp) {
		first := a.ask(glasses.TypePlaybackStart, glasses.PlaybackStart{SampleRate: 24000})
		a.playSound(first, 3000)
		a.ask(glasses.TypePlaybackEnd, struct{}{})
	}, func(a *testApp, f glasses.Frame) {
		var p glasses.PlaybackState
		_ = json.Unmarshal(f.Payload, &p)
		switch {
		case p.State == glasses.PlaybackFinished:
			second := a.ask(glasses.TypePlaybackStart, glasses.PlaybackStart{})
			a.playSound(second, 2000)
			sleep = a.ask(glasses.TypeClockSleep, glasses.Sleep{Ms: 700})
		case f.Type == glasses.TypeResult && f.ID == sleep:
			a.ask(glasses.TypePlaybackFlush, struct{}{})
		}
	})
	if _, settled, err := l.Advance(t.Context(), o.SessionID, 3699); err != nil || !settled {
		t.Fatal(settled, err)
	}
	if _, settled, err := l.Advance(t.Context(), o.SessionID, 1); err != nil || !settled {
		t.Fatal(settled, err)
	}
	page, err := l.Since(t.Context(), backend.Target{}, o.SessionID, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var count glasses.StreamCount
	for _, raw := range page.Events {
		var e glasses.Event
		_ = json.Unmarshal(raw, &e)
		switch e.Type {
		case glasses.TypePlayback:
			var p glasses.PlaybackState
			_ = json.Unmarshal(e.Payload, &p)
			got = append(got, fmt.Sprintf("%d %s %d%s", e.At, p.State, p.PlayedMs, p.Reason))
		case glasses.RowStreamCounted:
			var c glasses.StreamCount
			_ = json.Unmarshal(e.Payload, &c)
			count.Frames += c.Frames
			count.Bytes += c.Bytes
		}
	}
	want := []string{"0 started 0", "3000 finished 3000", "3000 started 0", "3700 stopped 700"}
	if !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if count.Frames != 50 || count.Bytes != 50*glasses.MaxPlaybackChunk {
		t.Errorf("the log counts %+v, want 50 chunks", count)
	}
}
