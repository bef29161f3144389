package pump

import "strconv"

// kind is what a JSON-RPC 2.0 message is.
type kind int

const (
	invalid kind = iota // not JSON, or not a message: passed on, never tracked
	request
	notification
	response
	misnamed // a request with an id that is none
	batch    // an array of messages (MCP 2025-03-26)
)

// message is what the pump knows of a line. The slices point into the line.
type message struct {
	kind   kind
	id     string // normalised; empty when there is none, or none that names a call
	rawID  []byte
	method string
	params []byte
	parts  []message // of a batch
	line   []byte    // all of it, where it is kept
	again  bool      // it was sent to a daemon that died
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

// scanAgain reads a line that is kept, and remembers whether a daemon died over it.
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

// message reads an object and classifies it. As in encoding/json, the last of equal names wins.
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

// member finds a member of a JSON object by its path; nil when it is not there.
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

// maxID is the largest number that the daemon takes as an id.
const maxID = 1 << 53

// normalID makes ids comparable: a peer may write "a" for "\u0061". It is empty for what the daemon does not take as an
// id: anything but a string or an integer without fraction or exponent.
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
