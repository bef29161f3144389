package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/rendezvous"
)

func FuzzHandshake(f *testing.F) {
	f.Add([]byte(goodHandshake))
	f.Add([]byte(`{"mcp":1,"protocolMin":-1,"protocolMax":9,"env":{"CI":"\u0000"},"cwd":"../x"}`))
	f.Add([]byte(`{"mcp":1,"protocolMin":2,"protocolMax":1}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		who, _, answer := readHandshake(line, "1")
		if !answer.OK {
			if answer.Code == "" || answer.Message == "" || answer.FixHint == "" || who.Env != nil {
				t.Errorf("refusal %+v lacks a field, or has a caller: %+v", answer, who)
			}
			return
		}
		for name, value := range who.Env {
			if !slices.Contains(rendezvous.Variables, name) || len(value) > rendezvous.MaxVariable {
				t.Errorf("the environment contains %q, want only short variables of the allow-list", name)
			}
		}
		if who.Cwd != "" && !filepath.IsAbs(who.Cwd) {
			t.Errorf("cwd %q", who.Cwd)
		}
		for _, name := range []string{who.Client, who.Version} {
			if len(name) > 100 || strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
				t.Errorf("name %q", name)
			}
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"))
	f.Add([]byte(strings.Repeat("x", 40) + "\ny\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 32
		r := newLineReader(bytes.NewReader(data), limit)
		want := bytes.Split(data, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		for _, w := range want {
			got, err := r.next()
			if w = bytes.TrimSuffix(w, []byte("\r")); len(w) > limit {
				if !errors.Is(err, errLineTooLong) {
					t.Fatalf("a line of %d bytes: got %q, %v; want errLineTooLong", len(w), got, err)
				}
				continue
			}
			if err != nil || !bytes.Equal(got, w) {
				t.Fatalf("got %q, %v, want %q", got, err, w)
			}
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last line: got %v, want EOF", err)
		}
	})
}

// FuzzStream sends arbitrary lines to a session, which must answer with JSON lines and end with the stream.
func FuzzStream(f *testing.F) {
	echo := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	f.Add([]byte(initialize + "\n" + initialized + "\n" + echo))
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo",` + modernMeta + `}}`))
	f.Add([]byte(`[` + echo + `,` + echo + `]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`))
	f.Add([]byte("{}\n[[]]\nnull\n\"x\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fake := newFakeTools()
		close(fake.release)
		var out bytes.Buffer
		// Skipped so that the fuzzer cannot fill the fake's bounded channels.
		if bytes.Contains(data, []byte("slow")) {
			return
		}
		start := time.Now()
		defer func() {
			if time.Since(start) > 4*time.Second {
				t.Error("a call without a result delays the end of the stream")
			}
		}()
		if err := New(Options{Catalogue: fake, Version: "1"}).ServeStdio(context.Background(), bytes.NewReader(data), &out,
			caller.Caller{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
