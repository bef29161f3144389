package scenario

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestChanges_NamePlaceAndValues(t *testing.T) {
	const list = `{"tree":{"type":"list","children":[{"type":"text","text":"Mail"},{"type":"text","text":"Calendar"}]}}`
	for name, test := range map[string]struct {
		want, got string
		lines     []string
		path      string
	}{
		"nothing": {list, list, nil, ""},
		"a label": {list, `{"tree":{"type":"list","children":[{"type":"text","text":"Mail"},
			{"type":"text","text":"Kalender"}]}}`, []string{`list[1]: "Calendar" -> "Kalender"`}, "payload.tree.children[1].text"},
		"an added entry": {list, `{"tree":{"type":"list","children":[{"type":"text","text":"New"},
			{"type":"text","text":"Mail"},{"type":"text","text":"Calendar"}]}}`,
			[]string{`list[0]: + text "New"`}, "payload.tree.children[0]"},
		"a removed entry": {list, `{"tree":{"type":"list","children":[{"type":"text","text":"Calendar"}]}}`,
			[]string{`list[0]: - text "Mail"`}, "payload.tree.children[0]"},
		"a style": {list, `{"tree":{"type":"list","children":[{"type":"text","text":"Mail"},
			{"type":"text","text":"Calendar","style":"title"}]}}`,
			[]string{`list[1] style: + "title"`}, "payload.tree.children[1].style"},
		"a style that is gone": {`{"tree":{"type":"text","style":"title"}}`, `{"tree":{"type":"text"}}`,
			[]string{`text style: - "title"`}, "payload.tree.style"},
		"a type": {`{"tree":{"type":"row","children":[{"type":"text","text":"Go"}]}}`,
			`{"tree":{"type":"row","children":[{"type":"button","text":"Go"}]}}`,
			[]string{`row[0] type: "text" -> "button"`}, "payload.tree.children[0].type"},
		"deep": {`{"tree":{"type":"column","children":[{"type":"row","children":[{"type":"text","text":"a"}]}]}}`,
			`{"tree":{"type":"column","children":[{"type":"row","children":[{"type":"text","text":"b"}]}]}}`,
			[]string{`column[0].row[0]: "a" -> "b"`}, "payload.tree.children[0].children[0].text"},
		"a list of words": {`{"phrases":["stop","go"]}`, `{"phrases":["stop","go","back"]}`,
			[]string{`payload.phrases[2]: + "back"`}, "payload.phrases[2]"},
		"a number":             {`{"ms":100}`, `{"ms":200}`, []string{`payload.ms: 100 -> 200`}, "payload.ms"},
		"a field that is gone": {`{"a":1,"b":2}`, `{"a":1}`, []string{`payload.b: - 2`}, "payload.b"},
		"a list for a value":   {`{"x":1}`, `{"x":[1]}`, []string{`payload.x: 1 -> [1]`}, "payload.x"},
		"an object for a list": {`{"x":[1]}`, `{"x":{"y":1}}`, []string{`payload.x: [1] -> {"y":1}`}, "payload.x"},
	} {
		t.Run(name, func(t *testing.T) {
			want, okWant := decoded(json.RawMessage(test.want))
			got, okGot := decoded(json.RawMessage(test.got))
			if !okWant || !okGot {
				t.Fatal("no JSON")
			}
			c := changesOf(want, got)
			if !slices.Equal(c.lines, test.lines) || c.path != test.path {
				t.Errorf("lines %q at %q, want %q at %q", c.lines, c.path, test.lines, test.path)
			}
		})
	}
}
