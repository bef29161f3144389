package gateway

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestLocalBase(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:11434":         "http://localhost:11434/v1",
		"\thttp://localhost:11434/v1/\n": "http://localhost:11434/v1",
		"https://192.168.1.20/openai/v1": "https://192.168.1.20/openai/v1",
		"localhost:11434":                "", "ftp://localhost": "", "http://": "", "http://u:p@localhost": "",
		"http://localhost/?a=b": "", "http://localhost/#x": "", "http://localhost:x": "", "": "",
		"http://" + strings.Repeat("a", maxText): "",
	} {
		if got, err := localBase(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
}

// A name is resolved before it is judged, so that no name leads elsewhere.
func TestLocalOnly(t *testing.T) {
	for address, want := range map[string]error{
		"127.0.0.1:1": nil, "[::1]:1": nil, "10.1.2.3:80": nil, "192.168.0.1:80": nil, "172.16.0.1:80": nil, "[fd00::1]:80": nil,
		"[::ffff:127.0.0.1]:1": nil, "8.8.8.8:80": ErrNotLocal, "169.254.169.254:80": ErrNotLocal, "[fe80::1]:80": ErrNotLocal,
		"0.0.0.0:80": ErrNotLocal, "[::]:80": ErrNotLocal, "[2001:db8::1]:80": ErrNotLocal, "[::ffff:8.8.8.8]:80": ErrNotLocal,
		"172.32.0.1:80": ErrNotLocal, "localhost:80": ErrNotLocal, "": ErrNotLocal,
	} {
		if err := localOnly("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func FuzzParseModels(f *testing.F) {
	f.Add(`{"object":"list","data":[{"id":"llama3.2:1b"},{"id":"Qwen/Qwen2.5"},{"id":"llama3.2:1b"}]}`)
	f.Add(`{"data":[]}`)
	f.Add(`{"data":[{"id":"a b"},{"id":"` + strings.Repeat("x", maxModelName+1) + `"},{"id":7}]}`)
	f.Add(`{"data":null}`)
	f.Add("<html>")
	f.Fuzz(func(t *testing.T, body string) {
		names, ok := parseModels([]byte(body))
		if !ok && names != nil || len(names) > maxLocalModels || !slices.IsSorted(names) {
			t.Fatalf("%q: %q, %v", body, names, ok)
		}
		for i, name := range names {
			if name == "" || len(name) > maxModelName || strings.ContainsAny(name, " \n\t\x00") || i > 0 && names[i-1] == name {
				t.Fatalf("%q: %q", body, name)
			}
		}
	})
}

func TestParseModels(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"id":"b"},{"id":"a","owned_by":"library"},{"id":"b"},{"id":"with space"}]}`: "a,b",
		`{"data":[]}`: "", `{"data":null}`: "-", `{}`: "-", `[]`: "-", `nothing`: "-",
	} {
		names, ok := parseModels([]byte(body))
		if got := strings.Join(names, ","); ok == (want == "-") || ok && got != want {
			t.Errorf("%s: %q, %v", body, got, ok)
		}
	}
}
