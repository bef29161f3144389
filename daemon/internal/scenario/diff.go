package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
)

// maxValue is the maximum length of a value shown in a change, in characters.
const maxValue = 60

// changesOf returns the differences between two payloads of one type.
func changesOf(want, got any) changes {
	c := changes{}
	c.compare("payload", "payload", want, got)
	return c
}

// changes collects the differences between two payloads.
type changes struct {
	lines []string // one per change, e.g. `list[1]: "Calendar" -> "Kalender"`
	path  string   // of the first change, e.g. payload.tree.children[1].text
	same  []string // equal for changes that differ only in list indexes
}

// gone replaces a field that is missing from one of the two payloads.
type gone struct{}

func (c *changes) add(path, place string, want, got any) {
	if len(c.lines) == 0 {
		c.path = path
	}
	var line string
	_, removed := got.(gone)
	_, added := want.(gone)
	switch {
	case removed:
		line = fmt.Sprintf("%s: - %s", place, brief(want))
	case added:
		line = fmt.Sprintf("%s: + %s", place, brief(got))
	default:
		line = fmt.Sprintf("%s: %s -> %s", place, brief(want), brief(got))
	}
	c.lines = append(c.lines, line)
	c.same = append(c.same, fmt.Sprintf("%s: %s -> %s", anyIndex.ReplaceAllString(path, "[]"), canonicalOrGone(want),
		canonicalOrGone(got)))
}

var anyIndex = regexp.MustCompile(`\[\d+\]`)

func canonicalOrGone(v any) string {
	if _, ok := v.(gone); ok {
		return ""
	}
	return canonical(v)
}

// compare compares two values. place identifies them in a line. In a tree it is the node, e.g. list[1].
func (c *changes) compare(path, place string, want, got any) {
	w, isObject := want.(map[string]any)
	g, isObjectNow := got.(map[string]any)
	if isObject && isObjectNow {
		c.fields(path, place, w, g)
		return
	}
	wantList, isList := want.([]any)
	gotList, isListNow := got.([]any)
	if isList && isListNow {
		c.items(path, place, wantList, gotList)
		return
	}
	if isObject || isObjectNow || isList || isListNow || want != got {
		c.add(path, place, want, got)
	}
}

// fields compares two objects. It does not mention a node's field text, because lines contain the texts.
func (c *changes) fields(path, place string, want, got map[string]any) {
	names := sortedKeys(want)
	for _, name := range sortedKeys(got) {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	inTree := isNode(want) && isNode(got)
	for _, name := range names {
		w, inWant := want[name]
		g, inGot := got[name]
		inner := place + "." + name
		switch {
		case name == "tree" && isNode(w) && isNode(g):
			inner = nodeType(g)
		case inTree && name == "text":
			inner = place
		case inTree && name == "children":
			inner = place
		case inTree:
			inner = place + " " + name
		}
		switch {
		case !inGot:
			c.add(path+"."+name, inner, w, gone{})
		case !inWant:
			c.add(path+"."+name, inner, gone{}, g)
		default:
			c.compare(path+"."+name, inner, w, g)
		}
	}
}

// items aligns two lists and compares their entries, so that an added or removed entry does not shift the others.
func (c *changes) items(path, place string, want, got []any) {
	keys := func(list []any) (keys []string) {
		for _, v := range list {
			keys = append(keys, canonical(v))
		}
		return keys
	}
	wantKeys, gotKeys := keys(want), keys(got)
	wantLeaves, gotLeaves := leavesOfAll(want), leavesOfAll(got)
	cost := func(i, j int) int {
		if wantKeys[i] == gotKeys[j] {
			return 0
		}
		return changeCost(wantLeaves[i], gotLeaves[j])
	}
	for _, p := range align(len(want), len(got), cost) {
		switch {
		case p.got < 0:
			c.add(at(path, p.want), at(place, p.want), want[p.want], gone{})
		case p.want < 0:
			c.add(at(path, p.got), at(place, p.got), gone{}, got[p.got])
		case wantKeys[p.want] != gotKeys[p.got]:
			inner := at(place, p.got)
			if n := got[p.got]; isNode(n) && isNode(want[p.want]) && hasChildren(n) {
				inner += "." + nodeType(n)
			}
			c.compare(at(path, p.got), inner, want[p.want], got[p.got])
		}
	}
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// nodeTypes lists the types of the objects in a tree. The field "type" of a custom event may also have one of these
// values, which is harmless.
var nodeTypes = []string{glasses.NodeColumn, glasses.NodeRow, glasses.NodeText, glasses.NodeImage, glasses.NodeIcon,
	glasses.NodeButton, glasses.NodeList, glasses.NodeProgress}

func isNode(v any) bool { return slices.Contains(nodeTypes, nodeType(v)) }

func nodeType(v any) string {
	node, _ := v.(map[string]any)
	typ, _ := node["type"].(string)
	return typ
}

func hasChildren(v any) bool {
	node, _ := v.(map[string]any)
	_, ok := node["children"].([]any)
	return ok
}

// brief describes a value in a few words. A node is described by its type and text, any other value by its shortened
// JSON.
func brief(v any) string {
	if node, ok := v.(map[string]any); ok && isNode(v) {
		words := nodeType(v)
		for _, name := range []string{"text", "alt", "icon", "id"} {
			if text, ok := node[name].(string); ok && text != "" {
				return words + " " + brief(text)
			}
		}
		if list, ok := node["children"].([]any); ok {
			words += fmt.Sprintf(" of %d", len(list))
		}
		return words
	}
	text := canonical(v)
	if utf8.RuneCountInString(text) > maxValue {
		text = string([]rune(text)[:maxValue-1]) + "…"
	}
	return text
}

// canonical returns a decoded value as JSON with sorted fields.
func canonical(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
