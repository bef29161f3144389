package control

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/rendezvous"
)

func TestCaller_RoundTrip(t *testing.T) {
	for name, c := range map[string]Caller{
		"empty": {},
		"usual": {Env: map[string]string{"CI": "1", "DO_NOT_TRACK": ""}, Cwd: "/home/ada/an app", Client: "servicectl",
			Version: "1.2.3+deb12", ClientIO: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
		"not UTF-8": {Env: map[string]string{"CI": "\xff&=;%\n\x00"}, Cwd: "/caf\xe9"},
		"maximum":   {Env: longest(), Cwd: "/" + strings.Repeat("\xff", rendezvous.MaxVariable-1)},
	} {
		text := c.Encode()
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Errorf("%s: the value is not a valid header: %q", name, text)
		}
		got, err := ParseCaller(text)
		if err != nil || !same(got, c) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c)
		}
	}
}

// longest returns every variable with the longest value that is passed on, in the longest encoding.
func longest() map[string]string {
	env := map[string]string{}
	for _, name := range rendezvous.Variables {
		env[name] = strings.Repeat("\xff", rendezvous.MaxVariable)
	}
	return env
}

func same(a, b Caller) bool {
	return maps.Equal(a.Env, b.Env) && a.Cwd == b.Cwd && a.Client == b.Client && a.Version == b.Version &&
		a.ClientIO == b.ClientIO
}

func TestParseCaller_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"cwd=/a&cwd=/b":                       `repeats "cwd"`,
		"env.CI=1&env.CI=":                    `repeats "env.CI"`,
		"cwd=%zz":                             "%zz",
		"a;b":                                 "semicolon",
		"clientIO=short":                      "malformed clientIO",
		"cwd=" + strings.Repeat("x", 200<<10): "over the limit",
	} {
		if _, err := ParseCaller(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got error %v, want %s", text, err, want)
		}
	}
	if c, err := ParseCaller("colour=blue&cwd=/a"); err != nil || c.Cwd != "/a" {
		t.Errorf("a field of a later version: %+v, %v; want no error", c, err)
	}
}

// A value that is parsed can be encoded and parsed again with the same result.
func FuzzParseCaller(f *testing.F) {
	f.Add("")
	f.Add("cwd=%2Fhome%2Fada&client=servicectl&version=1.2.3&env.CI=1&clientIO=ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	f.Add("env.=&env.HTTPS_PROXY=http%3A%2F%2Fx%00%FF&other=1")
	f.Add("cwd=%zz&cwd=;")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCaller(text)
		if err != nil {
			return
		}
		encoded := c.Encode()
		if len(encoded) > MaxCaller {
			return // plain characters may need three bytes when they are encoded
		}
		again, err := ParseCaller(encoded)
		if err != nil || !same(again, c) {
			t.Fatalf("%q: %+v, then %+v (%v)", text, c, again, err)
		}
		h := http.Header{CallerHeader: {encoded}}
		if strings.ContainsAny(h.Get(CallerHeader), "\r\n") {
			t.Fatalf("%q is encoded with a line break", text)
		}
	})
}
