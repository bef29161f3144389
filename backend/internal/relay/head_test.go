package relay

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/proto/glasses"
)

func TestPlainHeadReadsWhatOurEncoderWrites(t *testing.T) {
	for _, typ := range streamTypes {
		data, err := glasses.EncodeBinary(glasses.Frame{Type: typ, ID: "g-1", At: 1767225604000, Payload: json.RawMessage(`{"a":"}\"{"}`)}, []byte("body"))
		if err != nil {
			t.Fatal(err)
		}
		if got, body, ok := plainHead(data); !ok || got != typ || body != 4 {
			t.Errorf("%s: %q, %d, %v", typ, got, body, ok)
		}
	}
}

// FuzzBinaryHead: the quick look says what the decoder says, for whatever a page sends.
func FuzzBinaryHead(f *testing.F) {
	for _, header := range []string{
		`{"v":1,"type":"video.frame","id":"g-1","at":1,"payload":{"width":640}}`,
		`{"v":1,"type":"video.frame","id":"g-1","at":1,"payload":{},"type":"input"}`,
		`{"v":1,"type":"video.frame","id":"g-1","at":01,"payload":{}}`,
		`{"v":1,"type":"media","id":"\u0041","at":1,"payload":{}}`,
		`{"v":1,"type":"motion","id":"g","at":1,"payload":{}{}}`,
		`{"v":1,"type":"motion","id":"g","at":1,"payload":{"a":[}}`, `{}`, ``,
	} {
		f.Add(append([]byte{byte(len(header) >> 8), byte(len(header))}, header+"body"...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		typ, body, ok := plainHead(data)
		if !ok {
			return
		}
		frame, rest, err := glasses.ParseBinary(data)
		if err != nil || frame.Type != typ || len(rest) != body {
			t.Fatalf("%q: the quick look says %s and %d, the decoder %s, %d, %v", data, typ, body, frame.Type, len(rest), err)
		}
	})
}
