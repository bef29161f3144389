package junit_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/service-dev/service/ctl/internal/junit"
)

func TestEncode(t *testing.T) {
	got := string(junit.Encode(junit.Suite{Name: "a <b>", Took: 1500 * time.Millisecond, Output: "x\x00]]>",
		Cases: []junit.Case{
			{Name: "one", Seconds: 0.25}, {Name: "two", Failure: "not \"this\"\nwant 1"}, {Name: "three", Skipped: true},
		}}))
	for _, want := range []string{
		`<testsuite name="a &lt;b&gt;" tests="3" failures="1" errors="0" skipped="1" time="1.500">`,
		`<testcase name="one" classname="a &lt;b&gt;" time="0.250"></testcase>`, `<failure message="not &#34;this&#34;">`,
		`<skipped></skipped>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing from\n%s", want, got)
		}
	}
	if got := string(junit.Encode(junit.Suite{Name: "x", Error: "no app"})); !strings.Contains(got, `errors="1"`) ||
		!strings.Contains(got, `<error message="no app">`) {
		t.Error(got)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("name", "text\x00\xff")
	f.Add("name", "")
	f.Add("na\u202eme", "\x1b[31mred\u009b2J\r\n\u2066x")
	f.Fuzz(func(t *testing.T, name, text string) {
		data := junit.Encode(junit.Suite{Name: name, Output: text, Error: text,
			Cases: []junit.Case{{Name: name, Failure: text}}})
		var any struct {
			Suite struct {
				Tests int `xml:"tests,attr"`
			} `xml:"testsuite"`
		}
		tests := 2
		if text == "" { // cases without an error are not listed
			tests = 1
		}
		if err := xml.Unmarshal(data, &any); err != nil || any.Suite.Tests != tests {
			t.Fatalf("unexpected number of tests, or invalid XML: %v: %s", err, data)
		}
		hidden := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
		if i := bytes.IndexFunc(data, hidden); i >= 0 {
			t.Fatalf("the output contains the unprintable text %q", data[i:min(i+8, len(data))])
		}
	})
}
