package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/media/exiftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simulated is simulated glasses on the machine's clock. bend changes their output: it returns the messages to send
// instead.
type simulated struct {
	frames   chan glasses.Frame
	messages chan Message
	bend     func(f glasses.Frame, body []byte) []Message
	device   *device.Device
	done     chan struct{}
	worker   sync.WaitGroup
}

func start(t *testing.T, model string, bend func(glasses.Frame, []byte) []Message) *simulated {
	t.Helper()
	m, _ := glasses.Model(model)
	s := &simulated{frames: make(chan glasses.Frame), messages: make(chan Message, 4096), bend: bend,
		device: device.New(m, device.Options{}), done: make(chan struct{})}
	s.worker.Go(s.run)
	t.Cleanup(func() {
		close(s.done)
		s.worker.Wait()
	})
	return s
}

func (s *simulated) Messages() <-chan Message { return s.messages }

func (s *simulated) Send(_ context.Context, data []byte) error {
	f, err := glasses.Parse(data)
	if err == nil {
		s.frames <- f
	}
	return err
}

func (s *simulated) run() {
	begin := time.Now()
	now := func() int64 { return time.Since(begin).Milliseconds() }
	for {
		wait := time.Hour
		if at, ok := s.device.Next(); ok {
			wait = time.Duration(max(0, at-now())) * time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case f := <-s.frames:
			s.device.Handle(now(), f, nil)
		case <-timer.C:
			s.device.Tick(now())
		case <-s.done:
			timer.Stop()
			return
		}
		timer.Stop()
		s.settle(now())
	}
}

// settle answers the device's requests to its host, and sends its frames.
func (s *simulated) settle(now int64) {
	for outs := s.device.Take(); len(outs) > 0; outs = s.device.Take() {
		for _, o := range outs {
			switch {
			case o.Ask == nil:
				for _, m := range s.bend(o.Frame, o.Body) {
					s.messages <- m
				}
			case o.Ask.Kind == device.AskChunk:
				s.device.Answer(now, o.Ask.ID, device.Material{Bytes: make([]byte, o.Ask.SampleRate/10*2)}, nil)
			case o.Ask.Kind == device.AskPhoto, o.Ask.Kind == device.AskFrame:
				var picture bytes.Buffer
				_ = jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 320, 240)), nil)
				s.device.Answer(now, o.Ask.ID, device.Material{Bytes: picture.Bytes(), MIME: "image/jpeg"}, nil)
			}
		}
	}
}

// message encodes a frame.
func message(f glasses.Frame, body []byte) []Message {
	m := Message{Binary: body != nil}
	if m.Data, _ = f.Encode(); m.Binary {
		m.Data, _ = glasses.EncodeBinary(f, body)
	}
	return []Message{m}
}

func failures(t *testing.T, lines []Line) map[string]string {
	t.Helper()
	failed := map[string]string{}
	for _, l := range lines {
		if !l.Passed() {
			failed[l.Name] = l.Problem
		}
		if !strings.Contains(glasses.Protocol, "\n## "+l.Section+"\n") {
			t.Errorf("%s: PROTOCOL.md has no section %q", l.Name, l.Section)
		}
	}
	return failed
}

func TestCheck_PassesSimulatedGlasses(t *testing.T) {
	for _, m := range glasses.Models() {
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			told := 0
			lines, err := Check(t.Context(), start(t, m.ID, message), m, func(Line) { told++ })
			if failed := failures(t, lines); err != nil || len(failed) > 0 {
				t.Errorf("got %v (error %v), want no failure", failed, err)
			}
			if told != len(lines) || told != len(rules(m)) {
				t.Errorf("told %d of %d lines", told, len(rules(m)))
			}
		})
	}
}

// faults maps the rule that must report a problem to glasses that break this rule.
var faults = map[string]func(f glasses.Frame, body []byte) []Message{
	"display.show is answered, and the view has its tree": func(f glasses.Frame, body []byte) []Message {
		f.Payload = json.RawMessage(strings.ReplaceAll(string(f.Payload), `"conformance"`, `"another text"`))
		return message(f, body)
	},
	"every frame has one result": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeResult {
			return slices.Concat(message(f, body), message(f, body))
		}
		return message(f, body)
	},
	"every frame has a valid envelope and an id of its own": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeBattery {
			return slices.Concat(message(f, body), message(f, body))
		}
		return message(f, body)
	},
	"audio.start sends sound in chunks of 100 ms": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeAudioChunk {
			body = body[:len(body)/2]
		}
		return message(f, body)
	},
	"a second audio.start is busy": func(f glasses.Frame, body []byte) []Message {
		f.Payload = json.RawMessage(strings.ReplaceAll(string(f.Payload), `"busy"`, `"platform_error"`))
		return message(f, body)
	},
	"sim.state changes the state with an event, or is unsupported": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeBattery {
			return nil
		}
		return message(f, body)
	},
	"camera.photo sends the picture and then its result": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeMedia {
			body = []byte("another picture")
		}
		return message(f, body)
	},
	"video.start sends pictures": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeVideoFrame {
			body = body[1:]
		}
		return message(f, body)
	},
	"motion.start sends what the sensors measure": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeMotion {
			f.Payload = json.RawMessage(`{"ax":0,"ay":0,"az":1000}`)
		}
		return message(f, body)
	},
	"after motion.stop there is no more motion": late(glasses.TypeMotion),
	"sim.fault fails the next command, or is unsupported": func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeResult && strings.Contains(string(f.Payload), `"platform_error"`) {
			f.Payload = json.RawMessage(`{"ok":true}`)
		}
		return message(f, body)
	},
	"after audio.stop there is no more sound": late(glasses.TypeAudioChunk),
	"a playback ends with an event, or is unsupported": func(f glasses.Frame, body []byte) []Message {
		f.Payload = json.RawMessage(strings.ReplaceAll(string(f.Payload), `"finished"`, `"started"`))
		return message(f, body)
	},
}

// older is glasses of a program that does not know playback.
type older struct{ *simulated }

func (o older) Send(ctx context.Context, data []byte) error {
	f, err := glasses.Parse(data)
	if err == nil && strings.HasPrefix(f.Type, "playback.") {
		f.Type, f.Payload = glasses.TypeResult, json.RawMessage(`{"error":{"code":"unsupported","message":"unknown type"}}`)
		o.messages <- message(f, nil)[0]
		return nil
	}
	return o.simulated.Send(ctx, data)
}

// Programs that are older than playback remain conformant.
func TestCheck_PassesGlassesWithoutPlayback(t *testing.T) {
	const model = "rayban_display"
	m, _ := glasses.Model(model)
	lines, err := Check(t.Context(), older{start(t, model, message)}, m, func(Line) {})
	if failed := failures(t, lines); err != nil || len(failed) > 0 {
		t.Errorf("got %v (error %v), want no failure", failed, err)
	}
}

// A phone's camera stores the phone's orientation and location in pictures, which an app must not receive.
func TestCheck_FindsPicturesWithMetadata(t *testing.T) {
	const model = "rayban_display"
	m, _ := glasses.Model(model)
	tagged := func(f glasses.Frame, body []byte) []Message {
		if f.Type == glasses.TypeMedia || f.Type == glasses.TypeVideoFrame {
			body = exiftest.Tag(body, exiftest.Block(binary.BigEndian, 1))
		}
		return message(f, body)
	}
	lines, err := Check(t.Context(), start(t, model, tagged), m, func(Line) {})
	failed := failures(t, lines)
	for _, name := range []string{"camera.photo sends the picture and then its result", "video.start sends pictures"} {
		if !strings.Contains(failed[name], "metadata") {
			t.Errorf("%s: got the failures %v (error %v), want metadata found", name, failed, err)
		}
	}
}

// late returns glasses that send another frame of a stream together with the next result that contains only ok.
func late(typ string) func(glasses.Frame, []byte) []Message {
	var last []Message
	isSent := false
	return func(f glasses.Frame, body []byte) []Message {
		sent := message(f, body)
		if f.Type == typ {
			f.ID = "late"
			last = message(f, body)
		}
		if last != nil && !isSent && f.Type == glasses.TypeResult && string(f.Payload) == `{"ok":true}` {
			isSent = true
			sent = append(sent, last...)
		}
		return sent
	}
}
func TestCheck_FindsTheBrokenRule(t *testing.T) {
	const model = "rayban_display" // it has all parts
	m, _ := glasses.Model(model)
	for name, bend := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := Check(t.Context(), start(t, model, bend), m, func(Line) {})
			failed := failures(t, lines)
			if got := slices.Collect(maps.Keys(failed)); err != nil || !slices.Equal(got, []string{name}) {
				t.Errorf("got the failures %v (error %v), want only %q", failed, err, name)
			}
		})
	}
}

// Glasses that disconnect during a check cause an error instead of a failed rule.
func TestCheck_EndsWithTheGlasses(t *testing.T) {
	s := start(t, "even_g1", message)
	m, _ := glasses.Model("even_g1")
	gone := &leaving{simulated: s, messages: make(chan Message)}
	close(gone.messages)
	if lines, err := Check(t.Context(), gone, m, func(Line) {}); err == nil || len(lines) > 0 {
		t.Errorf("got %v, want an error and no verdict", lines)
	}
}

type leaving struct {
	*simulated
	messages chan Message
}

func (l *leaving) Messages() <-chan Message { return l.messages }

// The same applies to glasses that disconnect between two rules, when the next frame cannot be sent.
func TestCheck_EndsWhenTheGlassesCannotBeReached(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	gone := &unreachable{simulated: start(t, "even_g1", message)}
	lines, err := Check(t.Context(), gone, m, func(Line) {})
	if !errors.Is(err, errGone) || len(lines) != 1 || !lines[0].Passed() {
		t.Errorf("got %v (error %v), want the verdict on the first rule and %q", lines, err, errGone)
	}
}

// unreachable is glasses that disconnect after their first answer.
type unreachable struct {
	*simulated
	sent int
}

func (u *unreachable) Send(ctx context.Context, data []byte) error {
	if u.sent++; u.sent > 1 {
		return errors.New("broken pipe")
	}
	return u.simulated.Send(ctx, data)
}

// Glasses that send endlessly do not exhaust the memory.
func TestCheck_EndsWithAFlood(t *testing.T) {
	for name, one := range map[string]string{
		"large": strings.Repeat("x", glasses.MaxBinary),
		"small": `{"v":1,"type":"input","id":"","at":0,"payload":{}}`,
	} {
		flood := make(chan Message)
		ctx, stop := context.WithCancel(t.Context())
		var sender sync.WaitGroup
		sender.Go(func() {
			for message := (Message{Data: []byte(one)}); ; {
				select {
				case flood <- message:
				case <-ctx.Done():
					return
				}
			}
		})
		m, _ := glasses.Model("even_g1")
		torrent := &leaving{simulated: start(t, "even_g1", message), messages: flood}
		if _, err := Check(t.Context(), torrent, m, func(Line) {}); !errors.Is(err, errTooMuch) {
			t.Errorf("%s messages: got %v, want %q", name, err, errTooMuch)
		}
		stop()
		sender.Wait()
	}
}
