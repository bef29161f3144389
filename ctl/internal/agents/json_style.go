package agents

import "bytes"

// style is how a file is written: new lines of an edit follow it.
type style struct{ newline, unit string }

func styleOf(data []byte, root span) style {
	s := style{newline: "\n", unit: "  "}
	if bytes.Contains(data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if len(root.members) == 0 {
		return s
	}
	first := root.members[0].keyStart
	line := bytes.LastIndexByte(data[:first], '\n') + 1
	if line > root.start && first > line && blank(data[line:first]) {
		s.unit = string(data[line:first])
	}
	return s
}

// insert puts a member at the end of an object whose closing brace stands at indent.
func (s style) insert(data []byte, object span, key, value, indent string) []byte {
	text := string(quote(key)) + ": " + value
	line := s.newline + indent + s.unit + text
	if len(object.members) == 0 {
		inside := data[object.start+1 : object.end-1]
		if blank(inside) {
			return splice(data, object.start+1, object.end-1, line+s.newline+indent)
		}
		if bytes.ContainsAny(inside, "\n") { // comments, which stay behind it
			return splice(data, object.start+1, object.start+1, line)
		}
		return splice(data, object.start+1, object.start+1, line+s.newline+indent)
	}
	last := object.members[len(object.members)-1]
	at, comma := last.value.end, ","
	if last.comma >= 0 {
		at, comma = last.comma+1, ""
		line += "," // whoever writes trailing commas wants this one too
	}
	end := endOfLine(data, at, object.end-1)
	if !bytes.ContainsAny(data[object.start:object.end], "\n") { // an object of one line is opened at its end
		line += s.newline + indent
	}
	return apply(data, []edit{{at, at, comma}, {end, end, line}})
}

// endOfLine steps over blanks and comments that follow a member on its line, so that they stay beside it.
func endOfLine(data []byte, at, limit int) int {
	end := at
	for at < limit {
		switch {
		case data[at] == ' ' || data[at] == '\t':
			at++
		case bytes.HasPrefix(data[at:limit], []byte("//")):
			n := bytes.IndexByte(data[at:limit], '\n')
			if n < 0 {
				return limit
			}
			if data[at+n-1] == '\r' {
				n--
			}
			return at + n
		case bytes.HasPrefix(data[at:limit], []byte("/*")):
			n := bytes.Index(data[at:limit], []byte("*/"))
			if n < 0 || bytes.ContainsAny(data[at:at+n], "\n") {
				return end
			}
			at += n + 2
			end = at
		default:
			return end
		}
	}
	return end
}
