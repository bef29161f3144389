package stdioproxy

import "strconv"

// kind is the kind of a JSON-RPC 2.0 message.
type kind int

const (
	invalid kind = iota // not a JSON-RPC message; forwarded but not tracked
	request
	notification
	response
	misnamed // a request with an invalid ID
	batch    // an array of messages (MCP 2025-03-26)
)

// message holds the parts of a line that the proxy needs. Its slices alias the line.
type message struct {
	kind   kind
	id     string // normalised; empty if there is no valid ID
	rawID  []byte
	method string
	params []byte
	parts  []message // messages of a batch
	line   []byte    // the whole line, if it is stored
	again  bool      // it was already sent to a daemon that exited
}

// scan reads one line.
func scan(line []byte) message {
	s := scanner{data: line}
	s.space()
	if s.peek() == '[' {
		return s.batch()
	}
	m, err := s.message()
	if err != nil || !s.end() {
		return message{}
	}
	return m
}

// scanAgain reads a stored line. again marks a line that was already sent to a daemon that exited.
func scanAgain(line []byte, again bool) message {
	m := scan(line)
	m.line, m.again = line, again
	return m
}

func (s *scanner) batch() message {
	m := message{kind: batch}
	err := s.elements(1, func() error {
		if s.peek() != '{' {
			return s.value(2)
		}
		part, err := s.message()
		m.parts = append(m.parts, part)
		return err
	})
	if err != nil || !s.end() {
		return message{}
	}
	return m
}

// message reads an object and classifies it. If a name occurs more than once, the last value is used, as
// in encoding/json.
func (s *scanner) message() (message, error) {
	var m message
	var answers bool
	err := s.object(1, func(name, value []byte) {
		switch string(name) {
		case "id":
			m.rawID, m.id = value, normalID(value)
		case "method":
			m.method = unquote(value)
		case "params":
			m.params = value
		case "result", "error":
			answers = true
		}
	})
	switch {
	case err != nil:
		return message{}, err
	case m.method != "" && m.id != "":
		m.kind = request
	case m.method != "" && len(m.rawID) > 0:
		m.kind = misnamed
	case m.method != "":
		m.kind = notification
	case answers:
		m.kind = response
	}
	return m, nil
}

// member returns the member of a JSON object at a path, or nil.
func member(object []byte, path ...string) []byte {
	for _, want := range path {
		var found []byte
		s := scanner{data: object}
		s.space()
		if s.object(1, func(name, value []byte) {
			if string(name) == want {
				found = value
			}
		}) != nil {
			return nil
		}
		object = found
	}
	return object
}

// maxID is the largest integer that the daemon accepts as an ID.
const maxID = 1 << 53

// normalID returns an ID in a canonical form, because a peer may write "a" for "\u0061". It returns "" for anything
// except a string or an integer without fraction or exponent.
func normalID(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return `"` + unquote(raw)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < -maxID || n > maxID {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
