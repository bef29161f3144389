package agents

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/tailscale/hujson"
)

// style is the layout of a file, which new lines must match.
type style struct{ newline, unit string }

func styleOf(data []byte, root *hujson.Object) style {
	s := style{newline: "\n", unit: "  "}
	if bytes.Contains(data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if len(root.Members) == 0 {
		return s
	}
	extra := root.Members[0].Name.BeforeExtra
	if i := bytes.LastIndexByte(extra, '\n'); i >= 0 && i+1 < len(extra) && blank(extra[i+1:]) {
		s.unit = string(extra[i+1:])
	}
	return s
}

// insert appends a member to an object whose closing brace is indented by indent.
func (s style) insert(object *hujson.Object, key, value, indent string) {
	line, end := s.newline+indent+s.unit, s.newline+indent
	oneLine := !bytes.Contains(hujson.Value{Value: object}.Pack(), []byte("\n"))
	added := hujson.ObjectMember{Name: hujson.Value{Value: hujson.Literal(quote(key))}}
	added.Value = hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.Literal(value)}
	beside, rest := hujson.Extra(nil), object.AfterExtra
	switch n := len(object.Members); {
	case n > 0:
		last := &object.Members[n-1].Value
		if last.AfterExtra != nil { // use a trailing comma if the file does
			added.Value.AfterExtra = hujson.Extra{}
		}
		beside, rest = splitLine(rest)
		if !oneLine {
			end = ""
		}
	case blank(rest):
		rest = nil
	case !oneLine: // these are comments, which must follow the new member
		end = ""
	}
	added.Name.BeforeExtra = append(bytes.Clone(beside), line...)
	object.Members = append(object.Members, added)
	object.AfterExtra = append([]byte(end), rest...)
}

// besideMember matches the comments on the same line after a member.
var besideMember = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[ \t]*/\*[^\n]*?\*/)*(?:[ \t]*//[^\n]*)?`)
})

// splitLine separates the comments that belong to a member's line from the rest.
func splitLine(extra hujson.Extra) (beside, rest hujson.Extra) {
	n := len(bytes.TrimSuffix(besideMember().Find(extra), []byte("\r")))
	return extra[:n:n], extra[n:]
}
