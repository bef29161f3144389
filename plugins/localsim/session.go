package localsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	_ "github.com/service-dev/service/glasses/render/fonts/packs" // fonts for the text of every script
	"github.com/service-dev/service/plugins/internal/attach"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// maxCatchUp is how far real time may get ahead, in ms. If it gets further ahead, the machine was suspended, and the
// missed steps are skipped.
const maxCatchUp = 2000

// session is the glasses of one session, run by one goroutine.
type session struct {
	device   *device.Device
	fixtures *fixtures
	out      *attach.Frames
	log      *slog.Logger
	newID    func() string
	virtual  bool
	clock    int64        // virtual time
	wall     func() int64 // real time, in ms
	script   []line       // lines not yet spoken, by session time
	frames   int          // pictures taken by the camera so far
	chunks   int          // audio chunks sent since the microphone was switched on
}

func newSession(o *pluginv1.AttachOpen, to attach.Sender, log *slog.Logger) (*session, error) {
	model, snapshot, err := attach.ParseOpen(o)
	if err != nil {
		return nil, err
	}
	fix, err := openFixtures(string(o.GetFixturesDir()))
	if err != nil {
		return nil, attach.Invalid(err.Error())
	}
	s := &session{fixtures: fix, log: log.With("session", o.GetSessionId()), virtual: o.GetVirtualClock(),
		clock: o.GetNowMs()}
	s.out = &attach.Frames{To: to, Log: s.log}
	begin := time.Now()
	s.wall = func() int64 { return begin.UnixMilli() + time.Since(begin).Milliseconds() }
	s.newID = attach.NewIDs()
	s.device = device.New(model, device.Options{Snapshot: snapshot, NewID: s.newID, Pace: o.GetPace(),
		Stepwise: s.virtual})
	s.device.Tick(s.now())
	return s, nil
}

func (s *session) now() int64 {
	if s.virtual {
		return s.clock
	}
	return s.wall()
}

// Close implements attach.Session.
func (s *session) Close() { s.fixtures.close() }

// Serve implements attach.Session.
func (s *session) Serve(ctx context.Context, in <-chan *pluginv1.AttachRequest) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for s.out.Broken == nil {
		timer.Stop()
		if at, ok := s.next(); ok && !s.virtual {
			timer.Reset(time.Duration(max(0, at-s.now())) * time.Millisecond)
		}
		select {
		case m, ok := <-in:
			if !ok {
				return nil
			}
			s.request(m)
		case <-timer.C:
			s.catchUp(s.now())
		case <-ctx.Done():
			return nil
		}
	}
	return s.out.Broken
}

// request handles one request.
func (s *session) request(m *pluginv1.AttachRequest) {
	f, body, err := attach.ParseRequest(m)
	if err != nil {
		s.refuse(f.ID, err)
		return
	}
	if f.Type == glasses.SimAdvance && s.virtual {
		s.advance(f)
		return
	}
	now := s.now()
	if !s.virtual {
		s.catchUp(now)
	}
	s.device.Handle(now, f, body)
	s.settle()
}

// refuse sends an error for a frame that could not be parsed.
func (s *session) refuse(id string, err error) {
	if id == "" {
		id = s.newID()
	}
	s.send(glasses.TypeError, id, err)
}

// send sends a frame that the session itself created.
func (s *session) send(typ, id string, payload any) { s.out.Put(typ, id, s.now(), payload) }

// next returns the time of the next step of the glasses or the script that does not depend on requests.
func (s *session) next() (at int64, ok bool) {
	at, ok = s.device.Next()
	if len(s.script) > 0 && (!ok || s.script[0].AtMs < at) {
		return s.script[0].AtMs, true
	}
	return at, ok
}

// catchUp runs all steps that are due in real time.
func (s *session) catchUp(now int64) {
	for s.out.Broken == nil {
		at, ok := s.next()
		if !ok || at > now {
			return
		}
		if now-at > maxCatchUp {
			at = now
		}
		s.step(at)
	}
}

// advance moves virtual time to the next thing that is due, or to the requested time if that is earlier. Of several
// things that are due at once it runs the first, so that the app can react to each.
func (s *session) advance(f glasses.Frame) {
	parsed, err := glasses.ParseControl(f.Type, f.Payload)
	p, ok := parsed.(*glasses.Advance)
	if err != nil || !ok || p.ToMs > attach.MaxClock {
		e := &glasses.Error{Code: glasses.CodeBadPayload, Message: fmt.Sprintf("toMs is over the limit of %d",
			int64(attach.MaxClock))}
		_ = errors.As(err, &e)
		s.send(glasses.TypeResult, f.ID, glasses.Result{Error: e})
		return
	}
	to := max(s.clock, p.ToMs)
	if at, ok := s.next(); ok && at <= to {
		s.clock = max(s.clock, at)
	} else {
		s.clock = to
	}
	if at, ok := s.device.Next(); ok && at <= s.clock {
		s.device.Step(s.clock)
		s.settle()
	} else {
		s.device.Tick(s.clock)
		s.speak(s.clock)
	}
	at, more := s.next()
	reached := s.clock == to && (!more || at > to)
	s.send(glasses.TypeResult, f.ID, glasses.Result{OK: true, Clock: &glasses.Clock{NowMs: s.clock, Reached: reached}})
}

// step runs the step at one point in time.
func (s *session) step(at int64) {
	s.device.Tick(at)
	s.settle()
	for s.speak(at) {
	}
}

// speak delivers the next line of the script if it is due, and reports whether it was.
func (s *session) speak(at int64) bool {
	if len(s.script) == 0 || s.script[0].AtMs > at {
		return false
	}
	l := s.script[0]
	s.script = s.script[1:]
	payload, err := json.Marshal(glasses.Transcript{Text: l.Text, Final: l.Final, Language: l.Language})
	if err == nil {
		s.device.Control(at, glasses.SimTranscript, payload, nil)
	}
	s.settle()
	return true
}

// settle sends the output of the glasses and carries out their requests until there are no more.
func (s *session) settle() {
	for outs := s.device.Take(); len(outs) > 0; outs = s.device.Take() {
		for _, o := range outs {
			if o.Ask != nil {
				s.fulfil(*o.Ask)
			} else {
				s.out.Send(o.Frame, o.Body)
			}
		}
	}
}

// fulfil carries out a request of the glasses. It plays no speech or sounds. The glasses report their end after the
// duration of the playback.
func (s *session) fulfil(a device.Ask) {
	var m device.Material
	var err error
	switch a.Kind {
	case device.AskPhoto:
		m.Bytes, err = s.fixtures.photo(s.device.Model(), a.Width)
	case device.AskFrame:
		m.Bytes, err = s.fixtures.frame(s.device.Model(), s.frames, a.Width)
		s.frames++
	case device.AskVideo:
		m.Bytes, err = s.clip(a)
	case device.AskChunk:
		m.Bytes = s.fixtures.sound.Chunk(s.chunks, a.SampleRate)
		s.chunks++
	case device.AskMicOn:
		s.chunks = 0
		return
	case device.AskListen:
		s.script = s.fixtures.linesFrom(s.now())
		return
	case device.AskUnlisten:
		s.script = nil
		return
	default:
		return
	}
	var refusal *glasses.Error
	if err != nil {
		s.log.Warn("failed to read a fixture", "err", err)
		refusal = &glasses.Error{Code: glasses.CodePlatform, Message: err.Error()}
	}
	s.device.Answer(s.now(), a.ID, m, refusal)
}

// maxClip is the maximum total size of a clip's pictures before scaling, in bytes.
const maxClip = 32 << 20

// clip concatenates pictures from the camera.
func (s *session) clip(a device.Ask) ([]byte, error) {
	var clip []byte
	for n := range max(1, a.DurationMs*int64(a.FPS)/1000) {
		picture, err := s.fixtures.frame(s.device.Model(), s.frames+int(n), a.Width)
		if err != nil {
			return nil, err
		}
		if len(clip)+len(picture) > maxClip {
			break
		}
		clip = append(clip, picture...)
	}
	return clip, nil
}
