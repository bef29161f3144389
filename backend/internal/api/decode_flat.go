package api

import (
	"bytes"
	"reflect"
	"strings"
)

// decodeFlat is a fast path that decodes an object of plain strings into a struct of strings. Clients that wait poll
// with such objects, which decodeBytes would read twice. It returns false for any other input, valid or not. If it
// returns true, the value is the same as with decodeBytes.
func decodeFlat(data []byte, into any) bool {
	v := reflect.ValueOf(into).Elem()
	if v.Kind() != reflect.Struct || len(data) == 0 || data[0] != '{' {
		return false
	}
	t, rest, seen := v.Type(), data, 0
	for before := byte('{'); ; before = ',' {
		name, after, ok := quoted(rest, before)
		if !ok {
			return false
		}
		value, after, ok := quoted(after, ':')
		if !ok {
			return false
		}
		i := fieldNamed(t, name)
		if i < 0 || i > 31 || seen&(1<<i) != 0 || v.Field(i).Kind() != reflect.String {
			return false
		}
		seen |= 1 << i
		v.Field(i).SetString(string(value))
		if string(after) == "}" {
			return true
		}
		rest = after
	}
}

// quoted reads the delimiter mark and the string that follows, which must be ASCII without escapes or control
// characters.
func quoted(data []byte, mark byte) (text, rest []byte, ok bool) {
	if len(data) < 3 || data[0] != mark || data[1] != '"' {
		return nil, nil, false
	}
	end := bytes.IndexByte(data[2:], '"')
	if end < 0 {
		return nil, nil, false
	}
	text = data[2 : 2+end]
	for _, c := range text {
		if c == '\\' || c < ' ' || c > '~' {
			return nil, nil, false
		}
	}
	return text, data[2+end+1:], true
}

func fieldNamed(t reflect.Type, name []byte) int {
	for i := range t.NumField() {
		if known, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); known == string(name) {
			return i
		}
	}
	return -1
}
