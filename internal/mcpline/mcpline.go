// Package mcpline extracts the ID of a JSON-RPC message that cannot be parsed because it is too long to buffer, nested
// too deeply, or malformed. Clients wait for a response with the ID that they sent, and several end their session if a
// response has no ID. service-mcp and the daemon share the package. It does not use encoding/json, which service-mcp
// may not import.
package mcpline

import "unicode/utf8"

// MaxID is the maximum length of an ID in bytes.
const MaxID = 512

// Head finds the top-level ID of one message. Write accepts the line in pieces of any size, and Head buffers at most
// one short token. Its zero value is ready to use. It does not recognise member names with escapes.
type Head struct {
	depth    int
	inString bool
	escaped  bool
	ended    bool // the message is complete, or not an object
	token    []byte
	unusable bool // the token is too long or not a single scalar
	split    bool // white space follows the token
	name     string
	id       []byte
	method   bool
	answers  bool
}

// Of returns the Head of a complete line.
func Of(line []byte) *Head {
	h := &Head{}
	_, _ = h.Write(line)
	return h
}

// ID returns the ID as written by the peer, or nil if there is none or it cannot be used in a response.
func (h *Head) ID() []byte { return h.id }

// IsResponse reports whether the message is itself a response, to which no response may be sent.
func (h *Head) IsResponse() bool { return h.answers && !h.method }

// Write processes the next piece of the line. It never returns an error.
func (h *Head) Write(p []byte) (int, error) {
	for _, c := range p {
		if h.ended {
			break
		}
		h.step(c)
	}
	return len(p), nil
}

func (h *Head) step(c byte) {
	switch {
	case h.inString:
		h.keep(c)
		h.inString = c != '"' || h.escaped
		h.escaped = c == '\\' && !h.escaped
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		h.split = len(h.token) > 0
	case h.depth == 0:
		h.open(c)
	case c == '"':
		h.inString = true
		h.keep(c)
	case c == '{' || c == '[':
		h.unusable = h.unusable || h.depth == 1
		h.depth++
	case c == '}' || c == ']':
		h.depth--
		if h.depth == 0 {
			h.endMember()
			h.ended = true
		}
	case h.depth == 1 && c == ':':
		h.name = string(h.token)
		h.reset()
	case h.depth == 1 && c == ',':
		h.endMember()
	default:
		h.keep(c)
	}
}

// open expects the start of an object, optionally after a byte order mark.
func (h *Head) open(c byte) {
	switch c {
	case '{':
		h.depth = 1
	case byteOrderMark[0], byteOrderMark[1], byteOrderMark[2]:
	default:
		h.ended = true
	}
}

// byteOrderMark is the UTF-8 byte order mark, which some Windows programs write at the start of a stream.
const byteOrderMark = "\ufeff"

// TrimMark returns line, the first line of a stream, without its byte order mark.
func TrimMark(line []byte) []byte {
	if len(line) >= len(byteOrderMark) && string(line[:len(byteOrderMark)]) == byteOrderMark {
		return line[len(byteOrderMark):]
	}
	return line
}

// keep adds a byte to the token. It ignores nested values, which have no token.
func (h *Head) keep(c byte) {
	switch {
	case h.depth != 1:
	case h.split || len(h.token) == MaxID:
		h.unusable = true
	default:
		h.token = append(h.token, c)
	}
}

// endMember processes a complete member. If a name occurs more than once, the last value counts, as in encoding/json.
func (h *Head) endMember() {
	switch h.name {
	case `"id"`:
		h.id = nil
		if !h.unusable && Usable(h.token) {
			h.id = append([]byte(nil), h.token...)
		}
	case `"method"`:
		h.method = true
	case `"result"`, `"error"`:
		h.answers = true
	}
	h.name = ""
	h.reset()
}

func (h *Head) reset() { h.token, h.unusable, h.split = h.token[:0], false, false }

// Usable reports whether raw can be the ID of a response, which is any JSON string or number.
func Usable(raw []byte) bool {
	if len(raw) == 0 || len(raw) > MaxID {
		return false
	}
	if raw[0] == '"' {
		return isString(raw)
	}
	return isNumber(raw)
}

func isString(raw []byte) bool {
	if len(raw) < 2 || !utf8.Valid(raw) {
		return false
	}
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			return i == len(raw)-1
		case c < 0x20:
			return false
		case c == '\\':
			n := escape(raw[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return false
}

// escape returns the length of the escape sequence at the start of raw, or 0 if there is none.
func escape(raw []byte) int {
	if len(raw) < 2 {
		return 0
	}
	switch raw[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(raw) < 6 {
			return 0
		}
		for _, c := range raw[2:6] {
			if !isHex(c) {
				return 0
			}
		}
		return 6
	}
	return 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isNumber(raw []byte) bool {
	if raw[0] == '-' {
		raw = raw[1:]
	}
	whole := digits(raw)
	if whole == 0 || whole > 1 && raw[0] == '0' {
		return false
	}
	raw = raw[whole:]
	if len(raw) > 0 && raw[0] == '.' {
		n := digits(raw[1:])
		if n == 0 {
			return false
		}
		raw = raw[1+n:]
	}
	if len(raw) > 0 && (raw[0] == 'e' || raw[0] == 'E') {
		raw = raw[1:]
		if len(raw) > 0 && (raw[0] == '+' || raw[0] == '-') {
			raw = raw[1:]
		}
		n := digits(raw)
		return n > 0 && n == len(raw)
	}
	return len(raw) == 0
}

func digits(raw []byte) int {
	n := 0
	for n < len(raw) && raw[n] >= '0' && raw[n] <= '9' {
		n++
	}
	return n
}
