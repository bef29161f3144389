package mcpgate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzDecode compares the requests that plainRequest decodes with the SDK's.
func FuzzDecode(f *testing.F) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,"\u0041"]}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"x","params":null,"result":{"c":1}}`, `{"jsonrpc":"2.0","method":"","id":""}`,
		`{"jsonrpc":"2.0","method":"a","method":"b","id":-0}`, `{"jsonrpc":"2.0","\u006dethod":"a","params":[ ]}`,
		`{"jsonrpc":"2.0","id":9007199254740992,"Method":"a","method":"b","params": {"a" : 1} }`,
	} {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return
		}
		if id, present := members["id"]; present && !validID(id) {
			return
		}
		got := plainRequest(members)
		if got == nil {
			return
		}
		want, err := jsonrpc.DecodeMessage(data)
		if err != nil || !reflect.DeepEqual(want, jsonrpc.Message(got)) {
			t.Errorf("%s: got %+v; the SDK decodes %+v, %v", data, got, want, err)
		}
	})
}

func TestPlainRequest_UsualForms(t *testing.T) {
	for _, message := range []string{initialize, initialized,
		`{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"echo","arguments":{"text":"ü"}}}`} {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(message), &members); err != nil {
			t.Fatal(err)
		}
		if plainRequest(members) == nil {
			t.Errorf("the SDK must decode %s", message)
		}
	}
}

// Responses are identical, byte for byte, to the ones that the SDK encodes.
func TestEncode(t *testing.T) {
	for _, id := range []any{float64(0), float64(-1), float64(1 << 53), "a<b"} {
		for _, result := range []string{`{}`, `{"a":["<\u2028>",1e9]}`, ""} {
			r := &jsonrpc.Response{Result: json.RawMessage(result)}
			r.ID, _ = jsonrpc.MakeID(id)
			got, err := encode(r)
			want, wantErr := jsonrpc.EncodeMessage(r)
			if !bytes.Equal(got, want) || err != nil || wantErr != nil {
				t.Errorf("got %s, %v; want %s, %v", got, err, want, wantErr)
			}
		}
	}
}
