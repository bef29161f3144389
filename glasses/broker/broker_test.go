package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

const (
	left  PeerID = 1
	right PeerID = 2
)

var noon = time.UnixMilli(1_000_000)

func newBroker() *Broker {
	return New(Options{Recent: 8, CommandWait: 10 * time.Second, NoGlasses: "no glasses"})
}

// summary describes outputs briefly: an action, its frame or row, and the code of an error.
func summary(out []Output) string {
	var parts []string
	for _, o := range out {
		part := []string{"refuse", "apps", "glasses", "append", "ack"}[o.Action]
		switch o.Action {
		case Refuse:
			part += code(Payload(glasses.Result{Error: refusal(o.Err)}))
		case Append, Acknowledge:
			part += " " + o.Row.Kind + " " + o.Row.ID + " " + o.Row.Chip
			if o.Row.Seq > 0 {
				part += fmt.Sprint(" ", o.Row.Seq)
			}
			part += code(o.Row.Payload)
		default:
			f, _ := glasses.Parse(o.Data)
			part += " " + f.Type + " " + f.ID + code(f.Payload)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func refusal(err error) (e *glasses.Error) {
	_ = errors.As(err, &e)
	return e
}

func code(payload json.RawMessage) string {
	var res glasses.Result
	if json.Unmarshal(payload, &res) == nil && res.Error != nil {
		return " " + res.Error.Code
	}
	return ""
}

// step is one frame, or the time to pass before deadlines are checked.
type step struct {
	from   PeerID // NoPeer means the app
	player PeerID
	frame  []byte
	pass   time.Duration
	want   string
}

const ok = `{"ok":true}`

func TestBroker(t *testing.T) {
	clear := text("display.clear", "a1", "{}")
	for name, steps := range map[string][]step{
		"a command and its result": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{from: left, player: left, frame: text("result", "a1", ok), want: "apps result a1, append result a1 display"},
			{player: left, frame: clear, want: "ack request a1 display"},
			{from: left, player: left, frame: text("result", "a1", ok), want: "ack result a1 custom"},
		},
		"without glasses": {
			{frame: clear,
				want: "append request a1 display, apps result a1 not_connected, append result a1 errors not_connected"},
		},
		"standing state without glasses": {
			{frame: text("phrases.announce", "a1", `{"phrases":["next page"]}`),
				want: "append request a1 voice, apps result a1, append result a1 voice"},
			{frame: text("transcription.stop", "a2", "{}"),
				want: "append request a2 voice, apps result a2, append result a2 voice"},
			{frame: text("transcription.start", "a3", "{}"),
				want: "append request a3 voice, apps result a3 not_connected, append result a3 errors not_connected"},
			{frame: text("phrases.announce", "a4", `{"phrases":[""]}`),
				want: "append request a4 voice, apps result a4 bad_payload, append result a4 errors bad_payload"},
		},
		"an app's own transcription": {
			{player: left, frame: text("transcription", "a1", "{}"), want: "append event a1 custom"},
			{from: left, player: left, frame: text("transcription", "g1", `{"running":true}`),
				want: "apps transcription g1, append event g1 voice"},
		},
		"a payload that does not fit": {
			{player: left, frame: text("clock.sleep", "a1", `{"ms":-1}`),
				want: "append request a1 lifecycle, apps result a1 bad_payload, append result a1 errors bad_payload"},
		},
		"an id used for another frame": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{player: left, frame: text("speech.stop", "a1", "{}"), want: "refuse id_reused"},
		},
		"an app's own type": {
			{player: left, frame: text("com.example.x", "a1", "{}"), want: "append event a1 custom"},
			{player: left, frame: text("session.closed", "a2", "{}"), want: "append event a2 custom"},
		},
		"a deadline, and a result after it": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{pass: 9 * time.Second, want: ""},
			{pass: time.Second, want: "apps result a1 timeout, append result a1 errors timeout"},
			{from: left, player: left, frame: text("result", "a1", ok), want: "refuse timeout"},
		},
		"a command with a duration": {
			{player: left, frame: text("clock.sleep", "a1", `{"ms":5000}`),
				want: "append request a1 lifecycle, glasses clock.sleep a1"},
			{pass: 14 * time.Second, want: ""},
			{pass: time.Second, want: "apps result a1 timeout, append result a1 errors timeout"},
		},
		"a result without a command": {
			{from: left, player: left, frame: text("result", "a1", ok), want: "refuse bad_frame"},
		},
		"a result that cannot be read": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{from: left, player: left, frame: text("result", "a1", "{}"), want: "refuse bad_payload"},
			{from: left, player: left, frame: text("result", "a1", `{"error":{"code":"busy","message":"x"}}`),
				want: "apps result a1 busy, append result a1 errors busy"},
		},
		"events": {
			{from: left, player: left, frame: text("input", "g1", `{"kind":"tap"}`),
				want: "apps input g1, append event g1 display"},
			{from: left, player: left, frame: text("input", "g1", `{"kind":"tap"}`), want: "ack event g1 display"},
			{from: left, player: left, frame: text("com.example.x", "g2", "{}"), want: "append event g2 custom"},
			{from: right, player: left, frame: text("input", "g3", `{"kind":"tap"}`), want: "refuse bad_frame"},
		},
		"an event with the id of a command": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{from: left, player: left, frame: text("wear", "a1", "{}"), want: "apps wear a1, append event a1 lifecycle"},
			{from: left, player: left, frame: text("result", "a1", ok), want: "apps result a1, append result a1 display"},
		},
		"glasses that received a command before others took over": {
			{player: left, frame: clear, want: "append request a1 display, glasses display.clear a1"},
			{from: left, player: right, frame: text("result", "a1", ok), want: "apps result a1, append result a1 display"},
			{player: right, frame: text("display.clear", "a2", "{}"),
				want: "append request a2 display, glasses display.clear a2"},
			{from: left, player: right, frame: text("result", "a2", ok), want: "refuse bad_frame"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, now := newBroker(), noon
			for i, s := range steps {
				now = now.Add(s.pass)
				var out []Output
				switch {
				case s.frame == nil:
					out = b.ExpireCommands(now)
				case s.from == NoPeer:
					out = b.FromApp(now, s.player, admitted(t, glasses.SenderApp, s.frame), s.frame)
				default:
					out = b.FromGlasses(now, s.from, s.player, admitted(t, glasses.SenderGlasses, s.frame), s.frame)
				}
				if got := summary(out); got != s.want {
					t.Errorf("step %d: %s, want %s", i, got, s.want)
				}
			}
		})
	}
}

func admitted(t *testing.T, sender string, data []byte) glasses.Frame {
	t.Helper()
	f, err := Admit(sender, data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestBroker_HandsCommandsOverInTheirOrder(t *testing.T) {
	b := newBroker()
	for i := range 12 {
		frame := text("display.clear", fmt.Sprint("a", i), "{}")
		if i%3 == 0 {
			frame = text("clock.sleep", fmt.Sprint("a", i), `{"ms":5000}`)
		}
		b.FromApp(noon, left, admitted(t, glasses.SenderApp, frame), frame)
	}
	frames := b.HandOver(noon, left, right)
	for i, data := range frames {
		if f, _ := glasses.Parse(data); f.ID != fmt.Sprint("a", i) {
			t.Errorf("command %d is %s, want the commands in the order of the app", i, f.ID)
		}
	}
	if len(frames) != 12 || len(b.HandOver(noon, left, right)) != 0 || len(b.HandOver(noon, right, left)) != 12 {
		t.Errorf("%d commands were handed over, want 12 to the new glasses only", len(frames))
	}
}

func TestBroker_FailsCommandsByTheirDeadline(t *testing.T) {
	b := newBroker()
	for _, frame := range [][]byte{text("clock.sleep", "a1", `{"ms":5000}`), text("display.clear", "a3", "{}"),
		text("display.clear", "a2", "{}")} {
		b.FromApp(noon, left, admitted(t, glasses.SenderApp, frame), frame)
	}
	if due, ok := b.NextDeadline(); !ok || !due.Equal(noon.Add(10*time.Second)) {
		t.Errorf("the next deadline is %v, %v; want 10 s later", due, ok)
	}
	var ids []string
	for _, o := range b.GlassesGone(noon, "gone") {
		if o.Action == Append {
			ids = append(ids, o.Row.ID)
		}
	}
	if !slices.Equal(ids, []string{"a2", "a3", "a1"}) || b.Pending() != 0 {
		t.Errorf("failed %v, %d pending; want all failed, in the order of their deadlines", ids, b.Pending())
	}
}

// A broker restored from the rows of an earlier one recognizes repeats and knows the pending commands.
func TestBroker_Restore(t *testing.T) {
	before, rows := newBroker(), []glasses.Event(nil)
	for _, frame := range [][]byte{text("display.clear", "a1", "{}"), text("display.clear", "a2", "{}"),
		text("clock.sleep", "a3", `{"ms":-1}`)} {
		for _, o := range before.FromApp(noon, left, admitted(t, glasses.SenderApp, frame), frame) {
			if o.Action == Append {
				o.Row.Seq = int64(len(rows) + 1)
				rows = append(rows, o.Row)
				before.Logged(o.Row)
			}
		}
	}
	result := text("result", "a1", ok)
	for _, o := range before.FromGlasses(noon, left, left, admitted(t, glasses.SenderGlasses, result), result) {
		if o.Action == Append {
			rows = append(rows, o.Row)
		}
	}
	b := newBroker()
	for _, row := range rows {
		b.Restore(row, noon)
	}
	if _, isPending := b.Command("a2"); !isPending || b.Pending() != 1 {
		t.Errorf("%d commands are pending, want 1", b.Pending())
	}
	for _, tc := range []struct {
		broker *Broker
		want   string
	}{{before, "ack request a2 display 2"}, {b, "ack request a2 display 2"}} {
		frame := text("display.clear", "a2", "{}")
		if got := summary(tc.broker.FromApp(noon, right, admitted(t, glasses.SenderApp, frame), frame)); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
	late := text("result", "a3", ok)
	if got := summary(b.FromGlasses(noon, right, right, admitted(t, glasses.SenderGlasses, late),
		late)); got != "refuse timeout" {
		t.Errorf("a result after the service's own: %s, want it refused", got)
	}
	answer := text("result", "a2", ok)
	got := summary(b.FromGlasses(noon, left, right, admitted(t, glasses.SenderGlasses, answer), answer))
	if got != "apps result a2, append result a2 display" {
		t.Errorf("a result after a restart: %s, want it accepted", got)
	}
}

func TestBroker_ExtendDeadlines(t *testing.T) {
	b := newBroker()
	frame := text("clock.sleep", "a1", `{"ms":600000}`)
	b.FromApp(noon, left, admitted(t, glasses.SenderApp, frame), frame)
	b.ExtendDeadlines(noon.Add(time.Minute))
	if due, _ := b.NextDeadline(); !due.Equal(noon.Add(670 * time.Second)) {
		t.Errorf("the deadline is %v, want 670 s after noon", due)
	}
}

func TestBroker_ForgetsTheOldestFrames(t *testing.T) {
	b := newBroker()
	for i := range 9 {
		frame := text("com.example.x", fmt.Sprint("a", i), "{}")
		b.FromApp(noon, left, admitted(t, glasses.SenderApp, frame), frame)
	}
	for id, want := range map[string]bool{"a0": false, "a1": true, "a8": true} {
		if got := b.Knows(glasses.SenderApp, glasses.Frame{Type: "com.example.x", ID: id}); got != want {
			t.Errorf("Knows(%s) = %v, want %v", id, got, want)
		}
	}
}

// Every command in the log gets exactly one result, regardless of what the peers send.
func FuzzBroker(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"display.clear","id":"a1","at":1}` + "\n" +
		`{"v":1,"type":"result","id":"a1","at":1,"payload":{"ok":true}}`))
	f.Add([]byte(`{"v":1,"type":"clock.sleep","id":"a1","at":1,"payload":{"ms":600000}}` + "\n" +
		`{"v":1,"type":"wear","id":"a1","at":1}`))
	f.Add([]byte(`{"v":1,"type":"camera.video","id":"a1","at":1,"payload":{}}` + "\n{\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, now := New(Options{Recent: 1 << 16, CommandWait: time.Second, NoGlasses: "no glasses"}), noon
		results := map[string]int{}
		count := func(out []Output) {
			for _, o := range out {
				switch {
				case o.Action == Append && o.Row.Kind == glasses.KindRequest:
					results[o.Row.ID] += 0
				case o.Action == Append && o.Row.Kind == glasses.KindResult:
					results[o.Row.ID]++
				case o.Action != Append && o.Action != Acknowledge && len(o.Data) == 0:
					t.Fatalf("an output without a frame: %+v", o)
				}
			}
		}
		for i, line := range strings.Split(string(data), "\n") {
			now = now.Add(time.Millisecond)
			if f, err := Admit(glasses.SenderApp, []byte(line)); err == nil {
				count(b.FromApp(now, PeerID(i%3), f, []byte(line)))
			}
			if f, err := Admit(glasses.SenderGlasses, []byte(line)); err == nil {
				count(b.FromGlasses(now, PeerID(i%2+1), left, f, []byte(line)))
			}
			_, _, _ = AdmitBinary(glasses.SenderGlasses, []byte(line))
		}
		count(b.ExpireCommands(now.Add(time.Hour)))
		for id, n := range results {
			if n != 1 {
				t.Errorf("%s has %d results, want 1", id, n)
			}
		}
		if b.Pending() != 0 {
			t.Errorf("%d commands are pending, want none", b.Pending())
		}
	})
}

// Glasses cannot change the session to a connection or a model that does not exist.
func TestFromGlasses_RefusesUnknownLinkAndModel(t *testing.T) {
	for _, tc := range []struct {
		typ, payload string
		want         error
	}{
		{glasses.TypeLink, `{"state":"lossy"}`, nil},
		{glasses.TypeLink, `{"state":"disconnected"}`, errLink},
		{glasses.TypeLink, `{"state":3}`, errLink},
		{glasses.TypeDevice, `{"deviceModel":{"id":"even_g1"}}`, nil},
		{glasses.TypeDevice, `{"deviceModel":{"id":"none"}}`, errDevice},
		{glasses.TypeDevice, `{}`, errDevice},
	} {
		f := glasses.Frame{Type: tc.typ, ID: "g-1", Payload: json.RawMessage(tc.payload)}
		out := New(Options{Recent: 4}).FromGlasses(time.UnixMilli(1), 1, 1, f, nil)
		if !errors.Is(out[0].Err, tc.want) || (out[0].Action == Refuse) != (tc.want != nil) {
			t.Errorf("%s %s: %+v, want error %v", tc.typ, tc.payload, out, tc.want)
		}
	}
}

// Glasses that answer nothing do not let apps fill the memory with commands.
func TestFromApp_LimitsPendingCommands(t *testing.T) {
	b := newBroker()
	command := func(id string) string {
		f := glasses.Frame{Type: glasses.TypeClockSleep, ID: id, Payload: json.RawMessage(`{"ms":600000}`)}
		return summary(b.FromApp(noon, left, f, nil))
	}
	for i := range maxPending {
		want := fmt.Sprintf("append request c-%d lifecycle, glasses  ", i)
		if got := command(fmt.Sprint("c-", i)); got != want {
			t.Fatalf("command %d: %s, want %s", i, got, want)
		}
	}
	if got, want := command("more"), "append request more lifecycle, apps result more busy, "+
		"append result more errors busy"; got != want || b.Pending() != maxPending {
		t.Errorf("one command too many: %s with %d pending, want %s", got, b.Pending(), want)
	}
	cancel := glasses.Frame{Type: glasses.TypeClockCancel, ID: "cancel", Payload: json.RawMessage(`{"id":"c-0"}`)}
	got, want := summary(b.FromApp(noon, left, cancel, nil)), "append request cancel lifecycle, glasses  "
	if got != want {
		t.Errorf("cancelling at the limit: %s, want %s", got, want)
	}
	for _, id := range []string{"c-0", "cancel"} {
		b.FromGlasses(noon, left, left, glasses.Frame{Type: glasses.TypeResult, ID: id,
			Payload: json.RawMessage(`{"ok":true}`)}, nil)
	}
	if got, want := command("next"), "append request next lifecycle, glasses  "; got != want {
		t.Errorf("after a result: %s, want %s", got, want)
	}
}
