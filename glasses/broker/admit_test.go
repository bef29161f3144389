package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func text(typ, id, payload string) []byte {
	return []byte(`{"v":1,"type":"` + typ + `","id":"` + id + `","at":1,"payload":` + payload + `}`)
}

func TestAdmit(t *testing.T) {
	for _, tc := range []struct {
		sender, frame, want string // part of the error
	}{
		{glasses.SenderApp, string(text("display.clear", "a", "{}")), ""},
		{glasses.SenderApp, string(text("com.example.score", "a", "{}")), ""},
		{glasses.SenderApp, string(text("barrier", "a", "{}")), ""},
		{glasses.SenderApp, string(text("result", "a", "{}")), "comes from the glasses"},
		{glasses.SenderApp, string(text("audio.chunk", "a", "{}")), "comes from the glasses"},
		{glasses.SenderApp, string(text("sim.state", "a", "{}")), "comes from the service"},
		{glasses.SenderApp, string(text("welcome", "a", "{}")), "a peer must not send"},
		{glasses.SenderApp, "{", "must be a JSON object"},
		{glasses.SenderApp, strings.Repeat(" ", glasses.MaxFrame+1), "over the limit of"},
		{glasses.SenderGlasses, string(text("result", "a", "{}")), ""},
		{glasses.SenderGlasses, string(text("motion", "a", "{}")), ""},
		{glasses.SenderGlasses, string(text("barrier", "a", "{}")), "comes from an app"},
		{glasses.SenderGlasses, string(text("display.clear", "a", "{}")), "comes from an app"},
		{glasses.SenderGlasses, string(text("error", "a", "{}")), "a peer must not send"},
		{glasses.SenderGlasses, string(text("video.frame", "a", "{}")), "must be binary frames"},
	} {
		_, err := Admit(tc.sender, []byte(tc.frame))
		var refusal *glasses.Error
		if tc.want == "" && err == nil {
			continue
		}
		if !errors.As(err, &refusal) || refusal.Code != glasses.CodeBadFrame || tc.want == "" ||
			!strings.Contains(refusal.Message, tc.want) {
			t.Errorf("%s sends %.60s: %v, want %q", tc.sender, tc.frame, err, tc.want)
		}
	}
}

func TestAdmit_LimitsNesting(t *testing.T) {
	payload := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	for levels, accepted := range map[int]bool{glasses.MaxNesting: true, glasses.MaxNesting + 1: false, 1500: false} {
		_, textErr := Admit(glasses.SenderApp, text("com.example.score", "a", payload(levels)))
		binary, err := glasses.EncodeBinary(glasses.Frame{Type: glasses.TypeMedia, ID: "g-1",
			Payload: json.RawMessage(payload(levels))}, []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		_, _, binaryErr := AdmitBinary(glasses.SenderGlasses, binary)
		if (textErr == nil) != accepted || (binaryErr == nil) != accepted {
			t.Errorf("%d levels: text %v, binary %v", levels, textErr, binaryErr)
		}
	}
}

func TestAdmit_CompactsWhatIsLogged(t *testing.T) {
	f, err := Admit(glasses.SenderApp, text("com.example.score", "a", `{ "points" : 3 }`))
	if err != nil || string(f.Payload) != `{"points":3}` {
		t.Errorf("%s, %v", f.Payload, err)
	}
}

func TestAdmitBinary(t *testing.T) {
	encode := func(typ string) []byte {
		data, err := glasses.EncodeBinary(glasses.Frame{Type: typ, ID: "g-1", Payload: json.RawMessage(`{}`)}, []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, tc := range []struct {
		sender string
		data   []byte
		want   error
	}{
		{glasses.SenderGlasses, encode("video.frame"), nil},
		{glasses.SenderGlasses, encode("media"), nil},
		{glasses.SenderGlasses, encode("input"), errNotBinary},
		{glasses.SenderGlasses, encode("playback.chunk"), errNotBinary},
		{glasses.SenderApp, encode("video.frame"), errAppBinary},
	} {
		f, body, err := AdmitBinary(tc.sender, tc.data)
		if !errors.Is(err, tc.want) || err == nil && (string(body) != "body" || f.ID != "g-1") {
			t.Errorf("%s sends %q: got %+v, %q, %v, want error %v", tc.sender, tc.data, f, body, err, tc.want)
		}
	}
}

func TestParsePlain_ReadsWhatOurEncoderWrites(t *testing.T) {
	for _, typ := range streamTypes {
		frame := glasses.Frame{Type: typ, ID: "g-1", At: 1767225604000, Payload: json.RawMessage(`{"a":"}\"{"}`)}
		data, err := glasses.EncodeBinary(frame, []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		f, body, ok := parsePlain(data)
		if !ok || f.Type != typ || f.At != frame.At || string(body) != "body" {
			t.Errorf("%s: parsed as %+v, %q, %v, want the encoded frame", typ, f, body, ok)
		}
	}
}

// For any input, parsePlain reads the same frame as the decoder, or reports ok = false.
func FuzzAdmitBinary(f *testing.F) {
	for _, header := range []string{
		`{"v":1,"type":"video.frame","id":"g-1","at":1,"payload":{"width":640}}`,
		`{"v":1,"type":"video.frame","id":"g-1","at":1,"payload":{} }`,
		`{"v":1,"type":"video.frame","id":"g-1","at":1,"payload":{},"type":"input"}`,
		`{"v":1,"type":"video.frame","id":"g-1","at":01,"payload":{}}`,
		`{"v":1,"type":"media","id":"\u0041","at":1,"payload":{}}`,
		`{"v":1,"type":"playback.chunk","id":"a-2","at":1,"payload":{"playback":"a-1"}}`,
		`{"v":1,"type":"motion","id":"g","at":1,"payload":{}{}}`,
		`{"v":1,"type":"motion","id":"g","at":1,"payload":{"a":[}}`, `{}`, ``,
	} {
		f.Add(append([]byte{byte(len(header) >> 8), byte(len(header))}, header+"body"...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, body, ok := parsePlain(data)
		if !ok {
			return
		}
		want, rest, err := glasses.ParseBinary(data)
		if err != nil || got.Type != want.Type || got.ID != want.ID || got.At != want.At || got.V != want.V ||
			!bytes.Equal(got.Payload, want.Payload) || !bytes.Equal(body, rest) {
			t.Fatalf("%q: parsed as %+v, but the decoder returns %+v, %v", data, got, want, err)
		}
	})
}
