package jsonlimit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func nested(levels int) []byte {
	return []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
}

var documents = []string{
	`{}`, `[]`, `"a"`, `1`, ` { } `, `[ 1 , 2 ]`, `{"a":[{"b":{}},[],"]}\"[{\\"],"c\\":1.5e3, "d" : null}`, `[[[[1,[2]]],{}]]`,
	`"\\"`, `{"":""}`, "[\n]\n",
}

func TestMeasure_ReturnsTheIndentedSize(t *testing.T) {
	for _, text := range documents {
		checkMeasure(t, []byte(text))
	}
	checkMeasure(t, nested(100))
}

func checkMeasure(t *testing.T, data []byte) {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", indent); err != nil {
		t.Fatal(err)
	}
	// json.Indent keeps white space at the end of the document.
	if _, size := measure(data); size != len(bytes.TrimRight(b.Bytes(), " \t\r\n")) {
		t.Errorf("%.60q: measured %d bytes, indented to %d", data, size, b.Len())
	}
}

func FuzzMeasure(f *testing.F) {
	for _, text := range documents {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if json.Valid(data) && len(data) < 10_000 {
			checkMeasure(t, data)
		}
	})
}

func TestDeeper(t *testing.T) {
	for _, tc := range []struct {
		text string
		want bool
	}{
		{string(nested(64)), false}, {string(nested(65)), true}, {string(nested(9000)), true},
		{"[" + strings.Repeat(`{"a":[]},`, 1000) + "1]", false},
		{`["` + strings.Repeat(`\"[{`, 1000) + `"]`, false},
	} {
		if got := Deeper([]byte(tc.text), 64); got != tc.want {
			t.Errorf("%.60s: %v, want %v", tc.text, got, tc.want)
		}
	}
}

func TestIndent_KeepsWhatWouldBecomeTooLong(t *testing.T) {
	if got := Indent([]byte(`{"a":[1]}`), 1000); string(got) != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Errorf("%s", got)
	}
	for _, levels := range []int{1000, 9000} {
		if got := Indent(nested(levels), 1<<20); !bytes.Equal(got, nested(levels)) {
			t.Errorf("%d levels became %d bytes", levels, len(got))
		}
	}
}
