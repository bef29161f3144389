package glasses_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestParseKeepsThePayload(t *testing.T) {
	f, err := glasses.Parse([]byte(`{"v":1,"type":"input","id":"a-1","at":5,"seq":9,"new":1,"payload":{"kind":"tap","x":1,"y":2,"force":0.5}}`))
	if err != nil || f.Type != "input" || f.ID != "a-1" || f.At != 5 || f.Seq != 0 ||
		!strings.Contains(string(f.Payload), `"force":0.5`) {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, frame := range map[string]string{
		"empty": "", "text": "hello", "array": "[]", "no id": `{"v":1,"type":"x","at":0}`, "space in id": `{"v":1,"type":"x","id":"a b"}`,
		"long id": `{"v":1,"type":"x","id":"` + strings.Repeat("a", 65) + `"}`, "no type": `{"v":1,"id":"1"}`,
		"other version": `{"v":2,"type":"x","id":"1"}`, "payload array": `{"v":1,"type":"x","id":"1","payload":[]}`,
		"fraction": `{"v":1,"type":"x","id":"1","at":1.5}`, "negative": `{"v":1,"type":"x","id":"1","at":-1}`,
		"not UTF-8": "{\"v\":1,\"type\":\"x\",\"id\":\"1\",\"payload\":{\"a\":\"\xff\"}}",
		"too big":   `{"v":1,"type":"x","id":"1","payload":{"a":"` + strings.Repeat("a", glasses.MaxFrame) + `"}}`,
	} {
		_, err := glasses.Parse([]byte(frame))
		var e *glasses.Error
		if !errors.As(err, &e) || e.Code != glasses.CodeBadFrame {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// nested returns a frame whose payload has the given number of levels, including the payload itself.
func nested(levels int) string {
	return `{"v":1,"type":"note","id":"1","at":5,"payload":{"text":"]}\\\"[{","a":` + strings.Repeat("[", levels-1) +
		strings.Repeat("]", levels-1) + `}}`
}

func TestParseLimitsNesting(t *testing.T) {
	wide := `{"v":1,"type":"note","id":"1","at":5,"payload":{"a":[` + strings.Repeat(`{"b":[]},`, 1000) + `0]}}`
	brackets := `{"v":1,"type":"note","id":"1","at":5,"payload":{"a":"` + strings.Repeat(`\"[{`, 1000) + `"}}`
	for _, frame := range []string{nested(glasses.MaxNesting), wide, brackets} {
		if _, err := glasses.Parse([]byte(frame)); err != nil {
			t.Errorf("%.100s: %v", frame, err)
		}
	}
	for _, levels := range []int{glasses.MaxNesting + 1, 1500, 9900} {
		frame := nested(levels)
		f, err := glasses.Parse([]byte(frame))
		var e *glasses.Error
		if !errors.As(err, &e) || e.Code != glasses.CodeBadFrame || f.ID != "1" || !strings.Contains(e.Message, "80 levels") {
			t.Errorf("%d levels: %v, id %q", levels, err, f.ID)
		}
		message := append([]byte{byte(len(frame) >> 8), byte(len(frame))}, frame...)
		if _, _, err := glasses.ParseBinary(message); err == nil {
			t.Errorf("%d levels in a binary frame: accepted", levels)
		}
	}
}

func TestParseControlLimitsNesting(t *testing.T) {
	deep := `{"x":0.5,"other":` + strings.Repeat("[", glasses.MaxNesting) + strings.Repeat("]", glasses.MaxNesting) + `}`
	_, err := glasses.ParseControl(glasses.SimMotion, []byte(deep))
	var e *glasses.Error
	if !errors.As(err, &e) || e.Code != glasses.CodeBadPayload {
		t.Error(err)
	}
	if _, err := glasses.ParseControl(glasses.SimCamera, []byte(deep)); err == nil {
		t.Error("sim.camera: accepted")
	}
}

func TestNewToolCalledLimitsNesting(t *testing.T) {
	called := glasses.NewToolCalled("note", `{"a":`+strings.Repeat("[", 1500)+strings.Repeat("]", 1500)+`}`)
	if called.Arguments != nil {
		t.Errorf("%.60s", called.Arguments)
	}
}

func BenchmarkParse(b *testing.B) {
	tree := `{"v":1,"type":"display.show","id":"1","at":5,"payload":{"tree":{"type":"column","children":[` +
		strings.Repeat(`{"type":"text","text":"A line of text on the panel"},`, 100) + `{"type":"divider"}]}}}`
	for b.Loop() {
		if _, err := glasses.Parse([]byte(tree)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestHello(t *testing.T) {
	h, _, err := glasses.ParseHello([]byte(`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"s","app":{"name":" A\u0000b\n` +
		strings.Repeat("x", 200) + `"},"since":0}}`))
	if err != nil || h.Since == nil || len([]rune(h.App.Name)) > 100 || strings.ContainsAny(h.App.Name, "\x00\n") {
		t.Errorf("%+v, %v", h.App, err)
	}
	_, _, err = glasses.ParseHello([]byte(`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"sst_visible"}}`))
	if err == nil || strings.Contains(err.Error(), "sst_visible") {
		t.Errorf("an app without a name: %v, want an error without the secret", err)
	}
}

func TestShowLimits(t *testing.T) {
	deep := strings.Repeat(`{"type":"column","children":[`, 40) + `{"type":"text"}` + strings.Repeat("]}", 40)
	wide := `{"type":"column","children":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text"},`, 600), ",") + "]}"
	for tree, ok := range map[string]bool{
		`{"type":"text","text":"x"}`:                        true,
		`{"type":"map3d","children":[{"type":"text"}]}`:     true,
		`{"type":"column","children":[{"text":"untyped"}]}`: false,
		`"text"`: false, deep: false, wide: false,
	} {
		if _, err := glasses.ParseShow([]byte(`{"tree":` + tree + `}`)); (err == nil) != ok {
			t.Errorf("%.60s: %v", tree, err)
		}
	}
}

func TestModelsAreWhole(t *testing.T) {
	if _, ok := glasses.Model(glasses.DefaultDeviceModel); !ok {
		t.Error("the default model is unknown")
	}
	for _, m := range glasses.Models() {
		if m.Name == "" || m.Inputs == nil || len(m.Fidelity) == 0 || m.Panel != nil &&
			(m.Panel.Width <= 0 || m.Panel.Height <= 0 || m.Panel.Bits < 0) {
			t.Errorf("%+v", m)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"display.show","id":"a","at":1,"payload":{"tree":{"type":"text","text":"x"}}}`))
	f.Add([]byte(`{"v":1,"type":"result","id":"a","at":1,"payload":{"error":{"code":"x"}}}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := glasses.Parse(data)
		if err != nil {
			return
		}
		_, _ = glasses.ParseShow(frame.Payload)
		_, _ = glasses.ParseResult(frame.Payload)
		again, err := frame.Encode()
		if err != nil || !json.Valid(again) {
			t.Fatalf("%q was accepted but cannot be encoded: %v", data, err)
		}
	})
}

func FuzzParseHello(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"hello","id":"1","at":0,"payload":{"secret":"s","app":{"name":"n"},"since":3}}`))
	f.Add([]byte(`{"v":1,"type":"hello","id":"1","payload":{"secret":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, _, err := glasses.ParseHello(data)
		if err == nil && (h.Secret == "" || h.App.Name == "" || len(data) > glasses.MaxHello) {
			t.Fatalf("accepted %q", data)
		}
	})
}

// The deepest allowed tree is not too deep for a frame, regardless of the content of its last node.
func TestParse_AcceptsTheDeepestTree(t *testing.T) {
	tree := strings.Repeat(`{"type":"row","children":[`, glasses.MaxTreeDepth-1) +
		`{"type":"text","text":"Hi","more":{"a":[{"b":[1]}]}}` + strings.Repeat(`]}`, glasses.MaxTreeDepth-1)
	f, err := glasses.Parse([]byte(`{"v":1,"type":"display.show","id":"1","at":0,"payload":{"tree":` + tree + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := glasses.ParseShow(f.Payload); err != nil {
		t.Error(err)
	}
}

func TestModels_SayHowFarTheyAreProven(t *testing.T) {
	for _, m := range glasses.Models() {
		if m.Proof.State == "" || m.Proof.Reason == "" {
			t.Errorf("%s: the proof is %+v, want a state and a reason", m.ID, m.Proof)
		}
	}
}
