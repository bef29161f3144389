package stdioproxy

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestScan_Kinds(t *testing.T) {
	tests := []struct {
		line, id, method string
		kind             kind
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "1", "tools/list", request},
		{` { "id" : "a\u0062" , "method" : "tools\/call" , "params" : {"id":9,"method":"no"} } ` + "\r\n", `"ab`,
			"tools/call", request},
		{`{"method":"notifications/initialized"}`, "", "notifications/initialized", notification},
		{`{"id":null,"method":"x"}`, "", "x", misnamed},
		{`{"id":1,"result":{}}`, "1", "", response},
		{`{"id":-0,"method":"x"}`, "0", "x", request},
		{`{"id":9007199254740992,"method":"x"}`, "9007199254740992", "x", request},
		{`{"id":-9007199254740993,"method":"x"}`, "", "x", misnamed},
		{`{"id":12345678901234567890,"method":"x"}`, "", "x", misnamed},
		{`{"id":7.5,"method":"x"}`, "", "x", misnamed},
		{`{"id":1.0,"method":"x"}`, "", "x", misnamed},
		{`{"id":1e3,"method":"x"}`, "", "x", misnamed},
		{`{"id":true,"method":"x"}`, "", "x", misnamed},
		{`{"id":{},"method":"x"}`, "", "x", misnamed},
		{`{"id":7,"error":{"code":1}}`, "7", "", response},
		{`{"\u0069d":4,"method":"x","id":5}`, "5", "x", request},
		{`{"id":5}`, "5", "", invalid},
		{`{"id":5,"method":"x"`, "", "", invalid},
		{`{"id":05,"method":"x"}`, "", "", invalid},
		{`hello`, "", "", invalid},
		{``, "", "", invalid},
	}
	for _, tt := range tests {
		m := scan([]byte(tt.line))
		if m.kind != tt.kind || m.id != tt.id || m.method != tt.method {
			t.Errorf("scan(%s) = kind %d id %q method %q, want %d %q %q", tt.line, m.kind, m.id, m.method, tt.kind, tt.id,
				tt.method)
		}
	}
}

func TestScan_Batch(t *testing.T) {
	m := scan([]byte(`[{"id":1,"method":"a"}, 5 ,{"method":"b"}]`))
	if m.kind != batch || len(m.parts) != 2 || m.parts[0].id != "1" || m.parts[1].kind != notification {
		t.Fatalf("scan of a batch: got %+v, want a request and a notification", m)
	}
}

func TestNewPending_StatelessRequest(t *testing.T) {
	m := scan([]byte(`{"id":1,"method":"tools/call",` +
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
	if !newPending(m).modern {
		t.Fatal("the request was not recognised as a request of the stateless protocol")
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a\"b\\c\n\t\x01\x1f", "\u2028ü😀", "bad\xffutf8"} {
		var back string
		if err := json.Unmarshal([]byte(quote(s)), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("quote(%q) = %s, which decodes to %q, %v", s, quote(s), back, err)
		}
	}
}

// FuzzScan checks the scanner against encoding/json: which text is valid JSON, and its id and method.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"a"}`, `{"id":"\ud83d\ude00\ud800x","method":"\u0000"}`, `[{"id":1.50e+3}]`,
		`{"a":[1,{"b":null}],"id":-0.0}`,
		`{"id":1,"id":"x"}`, `{"id":9007199254740993,"method":"a"}`, `{"id":-1e2,"method":"a"}`, `{"method":3}`,
		"{\"id\":\"\xff\"}", `{"":{}} `, `{"id":1}}`, `[1,]`, `{"a":tru}`, `-`, `"\u12"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		trimmed := bytes.TrimLeft(line, " \t\r\n")
		if len(trimmed) == 0 {
			return
		}
		m := scan(line)
		valid := json.Valid(line)
		if trimmed[0] == '[' {
			if (m.kind == batch) != valid {
				t.Fatalf("got batch %v, but valid %v", m.kind == batch, valid)
			}
			return
		}
		if trimmed[0] != '{' || !valid {
			if m.kind != invalid {
				t.Fatalf("got kind %d for a value that is not an object", m.kind)
			}
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(line, &want) != nil {
			t.Skip()
		}
		var method string
		if raw := want["method"]; len(raw) > 0 && raw[0] == '"' {
			_ = json.Unmarshal(raw, &method)
		}
		if m.method != method {
			t.Fatalf("method %q, want %q", m.method, method)
		}
		if !bytes.Equal(m.rawID, want["id"]) {
			t.Fatalf("got id %s, want %s", m.rawID, want["id"])
		}
		if raw := want["id"]; len(raw) > 0 && raw[0] == '"' {
			var id string
			_ = json.Unmarshal(raw, &id)
			if m.id != `"`+id {
				t.Fatalf("got normalised id %q, want %q", m.id, id)
			}
		} else if n, ok := new(big.Int).SetString(string(raw), 10); ok && n.CmpAbs(big.NewInt(1<<53)) <= 0 {
			if m.id != n.String() {
				t.Fatalf("got normalised id %q, want %s", m.id, n)
			}
		} else if m.id != "" || m.kind == request {
			t.Fatalf("%s was accepted as an id: %+v", raw, m)
		}
	})
}
