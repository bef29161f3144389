package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// A small reader of JSON as coding agents write it: with comments and trailing commas. It keeps where everything lies,
// so that an edit can leave the rest alone.

// span is a value with its place in the text.
type span struct {
	start, end int
	kind       byte // '{', '[', '"' or 'v' for everything else
	members    []member
	items      []span
}

// member is one key of an object.
type member struct {
	key      string
	keyStart int
	value    span
	comma    int // where the comma after it lies; -1 without one
}

// maxDepth bounds the nesting of a configuration file.
const maxDepth = 200

var errNotJSON = errors.New("the file is not JSON that can be changed safely")

type jsonReader struct {
	data  []byte
	pos   int
	depth int
}

// readJSON finds the places of everything in data.
func readJSON(data []byte) (span, error) {
	r := &jsonReader{data: data}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		r.pos = 3
	}
	if !utf8.Valid(data) {
		return span{}, fmt.Errorf("%w: it is not UTF-8", errNotJSON)
	}
	if err := r.trivia(); err != nil {
		return span{}, err
	}
	root, err := r.value()
	if err != nil {
		return span{}, err
	}
	if err := r.trivia(); err != nil {
		return span{}, err
	}
	if r.pos != len(data) {
		return span{}, r.wrong("something follows its end")
	}
	return root, nil
}

func (r *jsonReader) wrong(what string) error {
	return fmt.Errorf("%w: line %d: %s", errNotJSON, 1+bytes.Count(r.data[:min(r.pos, len(r.data))], []byte("\n")), what)
}

func (r *jsonReader) peek() byte {
	if r.pos < len(r.data) {
		return r.data[r.pos]
	}
	return 0
}

// trivia steps over white space and comments.
func (r *jsonReader) trivia() error {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.pos++
		case bytes.HasPrefix(r.data[r.pos:], []byte("//")):
			if n := bytes.IndexByte(r.data[r.pos:], '\n'); n >= 0 {
				r.pos += n
			} else {
				r.pos = len(r.data)
			}
		case bytes.HasPrefix(r.data[r.pos:], []byte("/*")):
			n := bytes.Index(r.data[r.pos+2:], []byte("*/"))
			if n < 0 {
				return r.wrong("a comment has no end")
			}
			r.pos += n + 4
		default:
			return nil
		}
	}
	return nil
}

func (r *jsonReader) value() (span, error) {
	if r.depth++; r.depth > maxDepth {
		return span{}, r.wrong("it is nested too deeply")
	}
	defer func() { r.depth-- }()
	switch r.peek() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		start := r.pos
		_, err := r.text()
		return span{start: start, end: r.pos, kind: '"'}, err
	}
	start := r.pos
	for r.pos < len(r.data) && !bytes.ContainsRune([]byte(" \t\r\n,:{}[]\"/"), rune(r.data[r.pos])) {
		r.pos++
	}
	if !json.Valid(r.data[start:r.pos]) {
		return span{}, r.wrong("a value is missing or is none")
	}
	return span{start: start, end: r.pos, kind: 'v'}, nil
}

func (r *jsonReader) text() (string, error) {
	start := r.pos
	for r.pos++; r.pos < len(r.data); r.pos++ {
		switch r.data[r.pos] {
		case '\\':
			r.pos++
		case '"':
			r.pos++
			var s string
			if json.Unmarshal(r.data[start:r.pos], &s) != nil {
				return "", r.wrong("a string is malformed")
			}
			return s, nil
		}
	}
	return "", r.wrong("a string has no end")
}

func (r *jsonReader) object() (span, error) {
	s := span{start: r.pos, kind: '{'}
	r.pos++
	for {
		if err := r.trivia(); err != nil {
			return s, err
		}
		if r.peek() == '}' {
			r.pos++
			s.end = r.pos
			return s, nil
		}
		if r.peek() != '"' || len(s.members) > 0 && s.members[len(s.members)-1].comma < 0 {
			return s, r.wrong("a key, a comma or a closing brace is missing")
		}
		m, err := r.member()
		if err != nil {
			return s, err
		}
		s.members = append(s.members, m)
	}
}

func (r *jsonReader) member() (member, error) {
	m := member{keyStart: r.pos, comma: -1}
	var err error
	if m.key, err = r.text(); err != nil {
		return m, err
	}
	if err := r.trivia(); err != nil {
		return m, err
	}
	if r.peek() != ':' {
		return m, r.wrong("a colon is missing")
	}
	r.pos++
	if err := r.trivia(); err != nil {
		return m, err
	}
	if m.value, err = r.value(); err != nil {
		return m, err
	}
	m.comma, err = r.comma()
	return m, err
}

// comma steps over a comma, which may stand after comments; -1 without one.
func (r *jsonReader) comma() (int, error) {
	if err := r.trivia(); err != nil {
		return -1, err
	}
	if r.peek() != ',' {
		return -1, nil
	}
	r.pos++
	return r.pos - 1, nil
}

func (r *jsonReader) array() (span, error) {
	s := span{start: r.pos, kind: '['}
	r.pos++
	comma := 0
	for {
		if err := r.trivia(); err != nil {
			return s, err
		}
		if r.peek() == ']' {
			r.pos++
			s.end = r.pos
			return s, nil
		}
		if comma < 0 {
			return s, r.wrong("a comma or a closing bracket is missing")
		}
		item, err := r.value()
		if err != nil {
			return s, err
		}
		s.items = append(s.items, item)
		if comma, err = r.comma(); err != nil {
			return s, err
		}
	}
}

// plain gives the value as ordinary JSON without comments, trailing commas and white space.
func (s span) plain(data []byte) []byte {
	var out bytes.Buffer
	s.write(&out, data)
	return out.Bytes()
}

func (s span) write(out *bytes.Buffer, data []byte) {
	switch s.kind {
	case '{':
		out.WriteByte('{')
		for i, m := range s.members {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(quote(m.key))
			out.WriteByte(':')
			m.value.write(out, data)
		}
		out.WriteByte('}')
	case '[':
		out.WriteByte('[')
		for i, item := range s.items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.write(out, data)
		}
		out.WriteByte(']')
	default:
		out.Write(data[s.start:s.end])
	}
}

// find returns the member of a key. ok is false without one; a key that is there twice is an error.
func (s span) find(key string) (m member, ok bool, err error) {
	for _, each := range s.members {
		if each.key == key {
			if ok {
				return m, true, fmt.Errorf("%w: %q is there twice", errNotJSON, key)
			}
			m, ok = each, true
		}
	}
	return m, ok, nil
}

// quote writes a JSON string without escaping what HTML would want escaped.
func quote(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
