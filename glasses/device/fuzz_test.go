package device_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/media"
)

// everyType lists the types that Handle accepts, in a fixed order.
func everyType() []string {
	var all []string
	for _, c := range glasses.Commands() {
		all = append(all, c.Type)
	}
	return append(all, glasses.SimInput, glasses.SimTranscript, glasses.SimState, glasses.SimMotion, glasses.SimFault,
		glasses.SimDevice,
		glasses.SimCamera, glasses.SimMicrophone, glasses.SimAdvance)
}

// line is one step of the fuzzed script: a type, the wait before it, whether the host answers, and a payload.
func line(typ string, wait byte, payload string) []byte {
	return append([]byte{byte(slices.Index(everyType(), typ)), wait}, payload+"\n"...)
}

// FuzzHandle runs arbitrary scripts. Handling them must not panic, every output frame can be sent, and every input
// frame is eventually answered exactly once.
func FuzzHandle(f *testing.F) {
	all := slices.Concat(line("display.show", 1, list), line("sim.input", 2, `{"kind":"tap","x":5,"y":5}`),
		line("camera.photo", 3, "{}"),
		line("camera.video", 200, `{"durationMs":3000}`), line("video.start", 1, "{}"), line("audio.start", 1,
			"{}"), line("motion.start", 1, `{"hz":100}`),
		line("transcription.start", 9, "{}"), line("sim.transcript", 1, `{"text":"x"}`), line("speech.say", 1,
			`{"text":"hello"}`))
	f.Add(all)
	for _, state := range []string{`{"link":"lossy"}`, `{"link":"lost"}`, `{"hinge":"folded"}`,
		`{"thermal":"critical"}`, `{"call":true}`, `{"permissions":{"camera":"denied"}}`} {
		f.Add(slices.Concat(line("sim.state", 0, state), all))
		f.Add(slices.Concat(all, line("sim.state", 0, state)))
	}
	f.Add(slices.Concat(all, line("sim.device", 0, `{"deviceModel":"even_g1"}`), all))
	f.Add(slices.Concat(line("sim.fault", 0, `{"code":"timeout","times":9}`),
		line("sim.fault", 0, `{"latencyMs":60000,"times":9}`), all))
	f.Add(slices.Concat(line("sim.camera", 0, string(media.TestPicture(16, 16, 0))), all))
	f.Fuzz(func(t *testing.T, script []byte) {
		m, _ := glasses.Model(glasses.DefaultDeviceModel)
		d := device.New(m, device.Options{})
		p := player{t: t, d: d, answers: map[string]int{}}
		for step := range bytes.SplitSeq(script, []byte("\n")) {
			if len(step) < 2 || p.sent > 200 {
				continue
			}
			p.play(step)
		}
		for range 100 { // far into the future
			p.now += 3600_000
			d.Tick(p.now)
			p.take(true)
		}
		for n := range p.sent {
			if id := fmt.Sprint("a-", n); p.answers[id] != 1 {
				t.Errorf("%s was answered %d times, want once", id, p.answers[id])
			}
		}
	})
}

type player struct {
	t       *testing.T
	d       *device.Device
	now     int64
	sent    int
	answers map[string]int
}

func (p *player) play(step []byte) {
	types := everyType()
	typ, body := types[int(step[0])%len(types)], []byte(nil)
	payload := step[2:]
	if typ == glasses.SimCamera || typ == glasses.SimMicrophone {
		payload, body = []byte("{}"), step[2:]
	}
	p.now += int64(step[1]) * 10
	p.d.Tick(p.now)
	p.take(step[1]%2 == 0)
	p.d.Handle(p.now, glasses.Frame{V: 1, Type: typ, ID: fmt.Sprint("a-", p.sent), Payload: json.RawMessage(payload)},
		body)
	p.sent++
	p.take(step[1]%2 == 0)
}

func (p *player) take(answer bool) {
	for outs := p.d.Take(); len(outs) > 0; outs = p.d.Take() {
		for _, o := range outs {
			switch {
			case o.Ask != nil && answer:
				p.d.Answer(p.now, o.Ask.ID, device.Material{Bytes: media.TestPicture(16, 16, 0)}, nil)
			case o.Ask != nil:
			case o.Body != nil:
				if _, err := glasses.EncodeBinary(o.Frame, o.Body); err != nil {
					p.t.Errorf("%s cannot be sent: %v", o.Frame.Type, err)
				}
			default:
				raw, err := o.Frame.Encode()
				if _, again := glasses.Parse(raw); err != nil || again != nil {
					p.t.Errorf("%s cannot be sent: %v, %v", o.Frame.Type, err, again)
				}
				if o.Frame.Type == glasses.TypeResult {
					p.answers[o.Frame.ID]++
				}
			}
		}
	}
}
