package stdioproxy

import "errors"

var (
	errSyntax = errors.New("not JSON")
	errDepth  = errors.New("nested too deeply")
)

// maxDepth is the limit of encoding/json, so that both accept the same input.
const maxDepth = 10000

// scanner validates strict JSON (RFC 8259) without building values.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// end reports whether only white space is left.
func (s *scanner) end() bool {
	s.space()
	return s.pos == len(s.data)
}

// take consumes c and the white space around it, and reports whether c was present.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.peek() != c || s.pos >= len(s.data) {
		return false
	}
	s.pos++
	s.space()
	return true
}

// object calls visit for each member of the object at the current position, with the unquoted name.
func (s *scanner) object(depth int, visit func(name, value []byte)) error {
	return s.list(depth, '{', '}', func() error {
		start := s.pos
		if err := s.str(); err != nil {
			return err
		}
		rawName := s.data[start:s.pos]
		if !s.take(':') {
			return errSyntax
		}
		start = s.pos
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if visit != nil {
			visit(nameOf(rawName), s.data[start:s.pos])
		}
		return nil
	})
}

// elements calls each for every element of an array. each must consume the element.
func (s *scanner) elements(depth int, each func() error) error { return s.list(depth, '[', ']', each) }

// list calls each for every item of a list delimited by first and last. each must consume the item.
func (s *scanner) list(depth int, first, last byte, each func() error) error {
	if depth > maxDepth {
		return errDepth
	}
	if !s.take(first) {
		return errSyntax
	}
	if s.closing(last) {
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if s.take(',') {
			continue
		}
		if s.closing(last) {
			return nil
		}
		return errSyntax
	}
}

// closing consumes c but not the white space after it, so that a value's bytes end with c.
func (s *scanner) closing(c byte) bool {
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// value consumes one value.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); {
	case s.pos >= len(s.data):
		return errSyntax
	case c == '{':
		return s.object(depth, nil)
	case c == '[':
		return s.elements(depth, func() error { return s.value(depth + 1) })
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return errSyntax
}

func (s *scanner) word(w string) error {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return errSyntax
	}
	s.pos += len(w)
	return nil
}

func (s *scanner) str() error {
	if s.peek() != '"' || s.pos >= len(s.data) {
		return errSyntax
	}
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c < 0x20:
			return errSyntax
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return errSyntax
}

// escape advances from a backslash to the last byte of the escape sequence.
func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			s.pos++
			if hexDigit(s.peek()) < 0 {
				return errSyntax
			}
		}
		return nil
	}
	return errSyntax
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) digits() error {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		return errSyntax
	}
	return nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
