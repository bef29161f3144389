package mcpline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestHead(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for _, test := range []struct {
		name, line, id string
		response       bool
	}{
		{"id first", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"id":2}}`, "1", false},
		{"id last, as the TypeScript client writes it",
			`{"method":"x","params":{"id":[3,{"id":4}]},"jsonrpc":"2.0","id":"a\u0062"}`, `"a\u0062"`, false},
		{"as it was written", `{"id" : 1.0e+0 ,"method":"x"}`, "1.0e+0", false},
		{"nested too deeply", `{"params":` + deep + `,"method":"x","id":7}`, "7", false},
		{"strings with braces", `{"params":"}\"]\\","id":7,"method":"x"}`, "7", false},
		{"a value that is not JSON", `{"params":{"a":tru},"id":7,"method":"x"}`, "7", false},
		{"cut after the id", `{"id":7,"method":"x","params":{"a`, "7", false},
		{"cut in the id", `{"method":"x","id":7`, "", false},
		{"the last of two", `{"id":1,"id":2,"method":"x"}`, "2", false},
		{"the last of two is none", `{"id":1,"id":null,"method":"x"}`, "", false},
		{"an object", `{"id":{"a":1},"method":"x"}`, "", false},
		{"a list", `{"id":[1],"method":"x"}`, "", false},
		{"a word", `{"id":true,"method":"x"}`, "", false},
		{"two tokens", `{"id":1 2,"method":"x"}`, "", false},
		{"a number that is none", `{"id":01,"method":"x"}`, "", false},
		{"a control character", "{\"id\":\"a\x01\",\"method\":\"x\"}", "", false},
		{"not UTF-8", "{\"id\":\"\xff\",\"method\":\"x\"}", "", false},
		{"too long", `{"id":"` + strings.Repeat("a", MaxID) + `","method":"x"}`, "", false},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{"method":"x"}}`, "7", true},
		{"an error", `{"jsonrpc":"2.0","id":7,"error":{}}`, "7", true},
		{"a batch", `[{"id":1,"method":"x"}]`, "", false},
		{"no message", `hello "id":1`, "", false},
		{"nothing", ``, "", false},
		{"behind a byte order mark", "\ufeff" + `{"id":7,"method":"x"}`, "7", false},
	} {
		for _, size := range []int{1, 3, len(test.line) + 1} {
			h := &Head{}
			for rest := []byte(test.line); len(rest) > 0; {
				n := min(size, len(rest))
				_, _ = h.Write(rest[:n])
				rest = rest[n:]
			}
			if string(h.ID()) != test.id || h.IsResponse() != test.response {
				t.Errorf("%s in pieces of %d bytes: got id %s, response %v, want %s, %v", test.name, size, h.ID(),
					h.IsResponse(), test.id, test.response)
			}
		}
	}
}

func TestHeadHoldsLittle(t *testing.T) {
	h := &Head{}
	_, _ = h.Write([]byte(`{"method":"x","params":"`))
	piece := bytes.Repeat([]byte("a"), 64<<10)
	if n := testing.AllocsPerRun(100, func() { _, _ = h.Write(piece) }); n > 0 {
		t.Errorf("Write made %v allocations, want 0", n)
	}
	_, _ = h.Write([]byte(`","id":9}`))
	if string(h.ID()) != "9" || cap(h.token) > 2*MaxID {
		t.Errorf("got id %s with a buffer of %d bytes, want 9 and at most 2*MaxID bytes", h.ID(), cap(h.token))
	}
}

// FuzzHead compares the id of a valid object with the result of encoding/json, and checks that any id is a JSON
// scalar.
func FuzzHead(f *testing.F) {
	for _, s := range []string{`{"id":1,"method":"a"}`, `{"a":{"id":1},"id":"x\\"}`, `{"id":-0.5E3}`,
		`{"id":1 ,"x":[{}]}`, `{"id":"`, `{"a":"\"","id":7}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		id := Of(line).ID()
		if id != nil && (!json.Valid(id) || !Usable(id)) {
			t.Fatalf("got the unusable id %q", id)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(line, &members) != nil || bytes.ContainsRune(line, '\\') {
			return
		}
		want := members["id"]
		if !Usable(want) {
			want = nil
		}
		if !bytes.Equal(id, want) {
			t.Fatalf("got id %q, want %q", id, want)
		}
	})
}
