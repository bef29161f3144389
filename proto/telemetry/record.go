package telemetry

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// AtLayout is the time layout of Event.At.
const AtLayout = "2006-01-02T15:04:05.000Z"

// Record is a valid event in the form that a backend stores.
type Record struct {
	ID   [16]byte
	At   int64 // Unix ms
	Name string
	// Fields is a JSON object without spaces, "{}" if the event has no fields.
	Fields []byte
}

// Record checks an event, except for the rules that depend on its time of arrival, and returns its record.
func (e Event) Record() (Record, error) {
	var r Record
	var ok bool
	if r.ID, ok = idOf(e.ID); !ok {
		return r, errors.New("the id is not a canonical UUID of version 7")
	}
	if r.At, ok = atOf(e.At); !ok {
		return r, fmt.Errorf("the time is not of the form %s", AtLayout)
	}
	if err := e.Check(); err != nil {
		return r, err
	}
	r.Name = e.Name
	if len(e.Fields) == 0 {
		r.Fields = []byte("{}")
		return r, nil
	}
	// Check accepts only numbers and plain words, so Marshal cannot fail.
	plain := make(map[string]any, len(e.Fields))
	for name, value := range e.Fields {
		var v any = value
		if s := ""; json.Unmarshal(value, &s) == nil {
			v = s // without unnecessary escapes
		}
		plain[name] = v
	}
	var err error
	r.Fields, err = json.Marshal(plain)
	return r, err
}

// idOf parses a canonical UUID of version 7.
func idOf[T ~[]byte | ~string](s T) (id [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || s[14] != '7' {
		return id, false
	}
	n := 0
	for i := 0; i < 36; i += 2 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++
		}
		hi, lo := hexOf[s[i]], hexOf[s[i+1]]
		if hi > 15 || lo > 15 {
			return id, false
		}
		id[n] = hi<<4 | lo
		n++
	}
	return id, id[8]>>6 == 2 // the variant of RFC 9562
}

// hexOf returns the value of a lower-case hexadecimal digit, or 255 for any other byte.
var hexOf = func() (of [256]byte) {
	for i := range of {
		of[i] = 255
	}
	for i, c := range []byte("0123456789abcdef") {
		of[c] = byte(i)
	}
	return of
}()

// IDText returns the canonical form of the id.
func (r Record) IDText() string {
	s := hex.EncodeToString(r.ID[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// atOf parses a time in AtLayout and returns Unix ms.
func atOf[T ~[]byte | ~string](s T) (int64, bool) {
	if len(s) != len(AtLayout) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' ||
		s[19] != '.' || s[23] != 'Z' {
		return 0, false
	}
	var v [7]int
	for i, at := range [7][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, 23}} {
		for _, c := range []byte(s[at[0]:at[1]]) {
			if c < '0' || c > '9' {
				return 0, false
			}
			v[i] = 10*v[i] + int(c-'0')
		}
	}
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6]*int(time.Millisecond), time.UTC)
	// Date would normalise 31 February to a day in March; such a time is invalid.
	return t.UnixMilli(), t.Month() == time.Month(v[1]) && t.Day() == v[2] && v[3] < 24 && v[4] < 60 && v[5] < 60
}

// Plain parses an upload in the form that the daemon writes: compact JSON, each field once, no escapes. It allocates
// only the records. ok is false for any other form, even a valid one; the caller must then parse the body strictly,
// which returns the same result where both succeed. rejected is the number of events whose name, fields, id or
// time is not valid, and dropped the number of lost events that the upload reports. The records alias body.
func Plain(body []byte) (records []Record, rejected int, dropped int64, ok bool) {
	p := plain{rest: body}
	if !p.take(`{"events":[`) {
		return nil, 0, 0, false
	}
	for !p.take("]") {
		if len(records)+rejected > 0 && !p.take(",") || len(records)+rejected == MaxBatch {
			return nil, 0, 0, false
		}
		r, of, fine := p.event()
		if !fine {
			return nil, 0, 0, false
		}
		if !of {
			rejected++
			continue
		}
		if records == nil {
			records = make([]Record, 0, min(MaxBatch, 1+len(body)/128))
		}
		records = append(records, r)
	}
	if p.take(`,"dropped":`) {
		n := p.number()
		if !isNumber(n) {
			return nil, 0, 0, false
		}
		for _, c := range n {
			dropped = 10*dropped + int64(c-'0')
		}
	}
	return records, rejected, dropped, p.take("}") && len(p.rest) == 0
}

// plain parses plain JSON from the beginning of rest.
type plain struct{ rest []byte }

// take removes text from the beginning and reports whether it was there.
func (p *plain) take(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

// text parses a string of printable ASCII without escapes and returns its content.
func (p *plain) text() ([]byte, bool) {
	if len(p.rest) == 0 || p.rest[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			s := p.rest[1:i]
			p.rest = p.rest[i+1:]
			return s, true
		case c == '\\' || c < ' ' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

// number parses digits.
func (p *plain) number() []byte {
	i := 0
	for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
		i++
	}
	n := p.rest[:i]
	p.rest = p.rest[i:]
	return n
}

// event parses one event whose fields are in the order of Event. of reports whether it is in the list.
func (p *plain) event() (r Record, of, ok bool) {
	var id, at, name []byte
	for _, part := range []struct {
		before string
		into   *[]byte
	}{{`{"id":`, &id}, {`,"at":`, &at}, {`,"name":`, &name}} {
		if !p.take(part.before) {
			return r, false, false
		}
		if *part.into, ok = p.text(); !ok {
			return r, false, false
		}
	}
	d, of := described[string(name)]
	fine := of
	r.Fields = emptyFields
	if p.take(`,"fields":`) {
		if r.Fields, fine, ok = p.fields(d); !ok {
			return r, false, false
		}
	}
	if !p.take("}") {
		return r, false, false
	}
	if !fine {
		return r, false, true
	}
	r.Name = d.Name
	var known, timed bool
	r.ID, known = idOf(id)
	r.At, timed = atOf(at)
	return r, known && timed, true
}

var emptyFields = []byte("{}")

// fields parses an object of words and numbers; fine reports whether all of them belong to d, which may be nil.
func (p *plain) fields(d *Description) (raw []byte, fine, ok bool) {
	start := p.rest
	if !p.take("{") {
		return nil, false, false
	}
	fine = d != nil
	seen := 0 // one bit per field
	for i := 0; !p.take("}"); i++ {
		if i > 0 && !p.take(",") {
			return nil, false, false
		}
		name, ok := p.text()
		if !ok || !p.take(":") {
			return nil, false, false
		}
		f := -1
		if d != nil {
			f = slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == string(name) })
		}
		switch {
		case f < 0:
			fine = false
		case seen&(1<<f) != 0:
			return nil, false, false
		default:
			seen |= 1 << f
		}
		kind := Word
		if f >= 0 {
			kind = d.Fields[f].Kind
		}
		right, ok := p.value(kind)
		if !ok {
			return nil, false, false
		}
		fine = fine && right
	}
	return start[:len(start)-len(p.rest)], fine, true
}

// value parses a text or a number; right reports whether it has the right kind and is within its limits.
func (p *plain) value(kind Kind) (right, ok bool) {
	if len(p.rest) > 0 && p.rest[0] == '"' {
		s, ok := p.text()
		return kind != Number && fits(kind, s), ok
	}
	n := p.number()
	// A leading zero is not valid JSON. A fraction or an exponent fails at the next token, which must be a comma or a
	// brace.
	return kind == Number && isNumber(n), len(n) > 0 && (n[0] != '0' || len(n) == 1)
}
