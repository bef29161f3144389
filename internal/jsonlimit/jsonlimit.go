// Package jsonlimit limits the cost of deeply nested JSON. Indentation is repeated on every line, so an indented
// document of 20 KB with 10,000 levels becomes hundreds of MB of text.
package jsonlimit

import (
	"bytes"
	"encoding/json"
)

const indent = "  "

// Deeper reports whether valid JSON has more than limit levels of objects and lists.
func Deeper(data []byte, limit int) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= limit {
		return false
	}
	levels, _ := measure(data)
	return levels > limit
}

// Indent returns valid JSON indented by two spaces for each level. If the result would be longer than limit, it returns
// data unchanged.
func Indent(data []byte, limit int) []byte {
	_, size := measure(data)
	if size > limit {
		return data
	}
	var b bytes.Buffer
	b.Grow(size)
	if json.Indent(&b, data, "", indent) != nil {
		return data
	}
	return b.Bytes()
}

// measure returns the number of levels of valid JSON, and its size when indented.
func measure(data []byte) (levels, size int) {
	level := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			end := i + stringLength(data[i:])
			size += end - i
			i = end - 1
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			level++
			levels = max(levels, level)
			size += 1 + 1 + level*len(indent)
		case '}', ']':
			size += 1 + 1 + (level-1)*len(indent)
			if before := bytes.TrimRight(data[:i], " \t\r\n"); bytes.HasSuffix(before, []byte{c - 2}) { // empty: no line breaks
				size -= 2 + (2*level-1)*len(indent)
			}
			level--
		case ',':
			size += 1 + 1 + level*len(indent)
		case ':':
			size += 2
		default:
			size++
		}
	}
	return levels, size
}

// stringLength returns the length of the JSON string at the start of data.
func stringLength(data []byte) int {
	for i := 1; ; i++ {
		next := bytes.IndexAny(data[i:], `"\`)
		if next < 0 {
			return len(data)
		}
		i += next
		if data[i] == '"' {
			return i + 1
		}
		i++ // skip the escaped character
	}
}
