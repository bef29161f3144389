package scaffold

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestModuleTalks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		if p.hello.Since != nil {
			t.Error("the first hello has the field since, want none")
		}
		shown := p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"ready"}}`)
		p.barrier("b-1") // the app waits for the result
		p.ok(shown)
		p.barrier("b-2") // the app waits for events

		// A barrier right after an event is answered once the event has been handled.
		p.input("g-1", "next")
		p.send(glasses.TypeBarrier, "b-3", struct{}{})
		next := p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"next"}}`)
		p.expect(glasses.TypeBarrier, "")
		p.ok(next)

		p.input("g-1", "next") // the same event again
		p.input("g-2", "photo")
		photo := p.expect(glasses.TypeCameraPhoto, `{"width":640}`)
		p.binary(glasses.TypeMedia, photo.ID, glasses.Media{}, []byte{0xff, 0xd8, 0xff})
		p.send(glasses.TypeResult, photo.ID, glasses.Result{OK: true,
			Media: &glasses.Media{MIME: "image/jpeg", Bytes: 3, Width: 640, Height: 480}})
		p.expect("com.example.photo", `{"bytes":3,"first":255,"width":640}`)

		p.input("g-3", "photo")
		photo = p.expect(glasses.TypeCameraPhoto, "")
		p.send(glasses.TypeResult, photo.ID, glasses.Result{Error: &glasses.Error{Code: glasses.CodePermissionDenied,
			Message: "refused by the person", Part: glasses.PartCamera, By: glasses.ByPermission}})
		p.expect("com.example.error",
			`{"by":"permission","code":"permission_denied","message":"refused by the person","part":"camera"}`)
		p.input("g-state", "state")
		p.expect("com.example.state", `{"battery":{"charging":false,"level":100},"call":false,"clock":"virtual",`+
			`"disabled":[],"hinge":"open","link":"connected","permissions":{"camera":"granted","microphone":"granted",`+
			`"speech":"granted"},"route":"glasses","thermal":"nominal","worn":true}`)

		p.input("g-4", "audio")
		audio := p.expect(glasses.TypeAudioStart, `{"sampleRate":8000}`)
		p.ok(audio)
		p.binary(glasses.TypeAudioChunk, "g-5", map[string]int{"sampleRate": 8000}, make([]byte, 1600))
		p.expect("com.example.chunk", `{"bytes":1600}`)

		p.input("g-6", "sleep")
		sleep := p.expect(glasses.TypeClockSleep, `{"ms":2000}`)
		p.barrier("b-4")
		p.ok(sleep)
		said := p.expect(glasses.TypeSpeechSay, `{"text":"Grüße"}`)
		p.ok(said)
		p.send("future.event", "g-7", map[string]int{"x": 1}) // unknown and therefore ignored
		p.send(glasses.TypeError, "nobody", glasses.Error{Code: glasses.CodeBadFrame, Message: "no"})
		p.barrier("b-5")
		p.close(4410, "the session is closed")
		app.says("closed")
	})
}

func TestModuleComesBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		shown := p.expect(glasses.TypeDisplayShow, "") // row 8
		p.ok(shown)
		p.input("g-1", "one")
		first, text := p.next() // not acknowledged
		p.cut()

		p = s.accept(20)
		if p.hello.Since == nil || *p.hello.Since != 8 {
			t.Errorf("since is %v, want 8", p.hello.Since)
		}
		again, resent := p.next()
		if again.ID != first.ID || resent != text {
			t.Errorf("resent frame: %s\nfirst sent as: %s", resent, text)
		}
		p.ack(again) // row 21
		p.cut()

		p = s.accept(30)
		if p.hello.Since == nil || *p.hello.Since != 21 {
			t.Errorf("since is %v, want 21", p.hello.Since)
		}
		// The missed result is read from the log. An event that the app has already received is delivered twice.
		p.input("g-1", "one")
		p.ok(first)
		p.barrier("b-1")
		p.input("g-2", "two")
		two := p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"two"}}`)
		p.ok(two)
		p.input("g-3", "photo")
		photo := p.expect(glasses.TypeCameraPhoto, "")
		p.cut() // the picture is lost with the connection

		p = s.accept(40)
		p.send(glasses.TypeResult, photo.ID, glasses.Result{OK: true, Media: &glasses.Media{MIME: "image/jpeg", Bytes: 3}})
		f := p.expect("com.example.error", "")
		if !sameJSON(f.Payload, `{"code":"media_lost","message":"the connection broke while the picture `+
			`was being sent; take it again"}`) {
			t.Errorf("%s", f.Payload)
		}
		p.close(4401, "this secret belongs to another session")
		app.says("refused")
	})
}

// A frame that is not JSON would never be answered, because the service cannot read its id.
func TestModuleRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		p.ok(p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"ready"}}`))
		p.input("g-1", "not json")
		p.expect("com.example.error", `{"code":"bad_payload","message":"display.show cannot be encoded as JSON"}`)
		p.input("g-2", "next")
		p.ok(p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"next"}}`))
		p.close(4410, "the session is closed")
		app.says("closed")
	})
}

func TestModuleChoosesItsTransport(t *testing.T) {
	t.Parallel()
	newest := newestVariants(t)
	for _, test := range []struct {
		name, want string
		env        []string
	}{
		{"nothing set", "not_configured", nil},
		{"no secret file", "not_configured", []string{"SERVICE_GLASSES_URL=ws://127.0.0.1:1/x",
			"SERVICE_GLASSES_SECRET_FILE=/nowhere/secret"}},
		{"real glasses", "transport_unavailable", []string{"SERVICE_GLASSES_TRANSPORT=device",
			"SERVICE_GLASSES_URL=ws://127.0.0.1:1/x"}},
		{"a misspelt transport", "not_configured", []string{"SERVICE_GLASSES_TRANSPORT=simulater",
			"SERVICE_GLASSES_URL=ws://127.0.0.1:1/x"}},
		{"a release build", "transport_unavailable", []string{"SERVICE_RELEASE=1", "SERVICE_GLASSES_URL=ws://127.0.0.1:1/x"}},
		{"a release build that asks for a simulator", "simulator_refused",
			[]string{"SERVICE_RELEASE=1", "SERVICE_GLASSES_TRANSPORT=simulator", "SERVICE_GLASSES_URL=ws://127.0.0.1:1/x"}},
		{"the platform's own word for release", "simulator_refused",
			[]string{"NODE_ENV=production", "PYTHONOPTIMIZE=1", "SERVICE_GLASSES_TRANSPORT=simulator"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachOf(t, newest, func(t *testing.T, start func(env ...string) *app) {
				if test.env != nil && test.env[0] == "NODE_ENV=production" && strings.HasSuffix(t.Name(), Kotlin) {
					t.Skip("a Kotlin app states its build: Settings.release has no default")
				}
				start(test.env...).says(test.want)
			})
		})
	}
}
