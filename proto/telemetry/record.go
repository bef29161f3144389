package telemetry

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	r.Fields = append(r.Fields, '{')
	for _, f := range described[e.Name].Fields {
		value, ok := e.Fields[f.Name]
		if !ok {
			continue
		}
		if f.Kind != Number {
			s, _ := text(value)
			value = json.RawMessage(`"` + s + `"`) // without unnecessary escapes: Check accepts only plain words
		}
		if len(r.Fields) > 1 {
			r.Fields = append(r.Fields, ',')
		}
		r.Fields = append(r.Fields, `"`+f.Name+`":`...)
		r.Fields = append(r.Fields, value...)
	}
	r.Fields = append(r.Fields, '}')
	return r, nil
}

// idOf parses a canonical UUID of version 7.
func idOf(s string) (id [16]byte, ok bool) {
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
func atOf(s string) (int64, bool) {
	if len(s) != len(AtLayout) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' ||
		s[19] != '.' || s[23] != 'Z' {
		return 0, false
	}
	var v [7]int
	for i, at := range [7][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, 23}} {
		for _, c := range s[at[0]:at[1]] {
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
