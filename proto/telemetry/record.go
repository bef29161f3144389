package telemetry

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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

// Record checks an event and returns its record. It does not apply the rules that depend on the time of arrival.
func (e Event) Record() (Record, error) {
	raw := rawEvent{id: []byte(e.ID), at: []byte(e.At), name: []byte(e.Name)}
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		raw.fields = append(raw.fields, rawField{[]byte(name), e.Fields[name]})
	}
	return raw.record()
}

// rawEvent is an event that has not been checked.
type rawEvent struct {
	id, at, name []byte
	fields       []rawField
}

// rawField is a field of an event, with its value as JSON.
type rawField struct{ name, value []byte }

// record returns an error if the event or one of its fields is not in the list.
func (e rawEvent) record() (r Record, err error) {
	var ok bool
	if r.ID, ok = idOf(string(e.id)); !ok {
		return r, errors.New("the id is not a canonical UUID of version 7")
	}
	if r.At, ok = atOf(string(e.at)); !ok {
		return r, fmt.Errorf("the time is not of the form %s", AtLayout)
	}
	d, ok := described[string(e.name)]
	if !ok {
		return r, fmt.Errorf("unknown event %q", shown(string(e.name)))
	}
	r.Name = d.Name
	r.Fields = append(make([]byte, 0, len("{}")+len(e.fields)*usualField), '{')
	seen := 0 // a bit for each field of the description
	for i, one := range e.fields {
		f := d.field(one.name)
		switch {
		case f < 0:
			return r, fmt.Errorf("%s has no field %q", r.Name, shown(string(one.name)))
		case seen&(1<<f) != 0:
			return r, fmt.Errorf("%s: %s occurs twice", r.Name, one.name)
		case i > 0:
			r.Fields = append(r.Fields, ',')
		}
		seen |= 1 << f
		if r.Fields, err = d.Fields[f].appendTo(r.Fields, one.value); err != nil {
			return r, fmt.Errorf("%s: %s: %w", r.Name, one.name, err)
		}
	}
	r.Fields = append(r.Fields, '}')
	return r, nil
}

// usualField is the usual length of a field with its name, in bytes.
const usualField = 24

// appendTo appends the field with a value to a JSON object. It returns an error if the value is not valid.
func (f Field) appendTo(object, value []byte) ([]byte, error) {
	object = append(object, '"')
	object = append(object, f.Name...)
	object = append(object, `":`...)
	if f.Kind == Number {
		if !isNumber(string(value)) {
			return nil, errors.New("not an integer from 0 to 2^53")
		}
		return append(object, value...), nil
	}
	s, ok := text(value)
	if !ok || !Fits(f.Kind, string(s)) {
		return nil, fmt.Errorf("not a %s of at most %d bytes", f.Kind, MaxWord)
	}
	object = append(object, '"') // without unnecessary escapes: Fits accepts only plain words
	object = append(object, s...)
	return append(object, '"'), nil
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

// atOf parses a time in AtLayout and returns it in Unix ms.
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
	// Reject times that Date normalises, such as 31 February.
	return t.UnixMilli(), t.Month() == time.Month(v[1]) && t.Day() == v[2] && v[3] < 24 && v[4] < 60 && v[5] < 60
}
