package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// tomlFile is Codex's configuration, with one table per server: [mcp_servers.NAME]. It is parsed line by line into
// statements, including multi-line strings and arrays. It refuses servers that are not written as tables.
type tomlFile struct{}

var errNotTOML = errors.New("the file is not TOML that can be changed safely")

const tomlTable = "mcp_servers"

// statement is a header or a key with its value.
type statement struct {
	start, end int      // excluding the line end
	header     bool     // [..] or [[..]]
	array      bool     // [[..]]
	path       []string // path of the header or of the key
	value      int      // offset of the value
	table      []string // path of the header that the key belongs to
}

// readTOML parses data into statements.
func readTOML(data []byte) ([]statement, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: it is not UTF-8", errNotTOML)
	}
	var list []statement
	var table []string
	pos := 0
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		pos = 3
	}
	for pos < len(data) {
		switch data[pos] {
		case ' ', '\t', '\n', '\r':
			pos++
			continue
		case '#':
			pos = lineEnd(data, pos)
			continue
		}
		s, next, err := readStatement(data, pos)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errNotTOML, 1+bytes.Count(data[:pos], []byte("\n")), err)
		}
		if s.header {
			table = s.path
		}
		s.table = table
		list = append(list, s)
		pos = next
	}
	return list, nil
}

func lineEnd(data []byte, pos int) int {
	if n := bytes.IndexByte(data[pos:], '\n'); n >= 0 {
		return pos + n
	}
	return len(data)
}

func readStatement(data []byte, pos int) (s statement, next int, err error) {
	s = statement{start: pos, header: data[pos] == '['}
	if s.header {
		pos++
		if pos < len(data) && data[pos] == '[' {
			s.array = true
			pos++
		}
	}
	if s.path, pos, err = readPath(data, pos); err != nil {
		return s, 0, err
	}
	closing := "="
	if s.header {
		closing = "]"
		if s.array {
			closing = "]]"
		}
	}
	if !bytes.HasPrefix(data[pos:], []byte(closing)) {
		return s, 0, fmt.Errorf("%q is missing", closing)
	}
	pos += len(closing)
	if !s.header {
		for pos < len(data) && (data[pos] == ' ' || data[pos] == '\t') {
			pos++
		}
		s.value = pos
		if pos, err = valueEnd(data, pos); err != nil {
			return s, 0, err
		}
		if pos == s.value {
			return s, 0, errors.New("missing value")
		}
	}
	s.end = pos
	rest := bytes.TrimLeft(data[pos:lineEnd(data, pos)], " \t\r")
	if len(rest) > 0 && rest[0] != '#' {
		return s, 0, errors.New("unexpected text after a statement")
	}
	return s, lineEnd(data, pos), nil
}

// readPath reads a dotted key and the white space around it.
func readPath(data []byte, pos int) ([]string, int, error) {
	var path []string
	for {
		for pos < len(data) && (data[pos] == ' ' || data[pos] == '\t') {
			pos++
		}
		key, next, err := readKey(data, pos)
		if err != nil {
			return nil, 0, err
		}
		path = append(path, key)
		for pos = next; pos < len(data) && (data[pos] == ' ' || data[pos] == '\t'); pos++ {
		}
		if pos >= len(data) || data[pos] != '.' {
			return path, pos, nil
		}
		pos++
	}
}

func readKey(data []byte, pos int) (string, int, error) {
	if pos < len(data) && (data[pos] == '"' || data[pos] == '\'') {
		end, err := stringEnd(data, pos)
		if err != nil {
			return "", 0, err
		}
		key := string(data[pos+1 : end-1])
		if data[pos] == '"' && json.Unmarshal(data[pos:end], &key) != nil {
			return "", 0, errors.New("invalid quoted key")
		}
		return key, end, nil
	}
	end := pos
	for end < len(data) && (data[end] == '_' || data[end] == '-' || data[end] >= '0' && data[end] <= '9' ||
		data[end] >= 'a' && data[end] <= 'z' || data[end] >= 'A' && data[end] <= 'Z') {
		end++
	}
	if end == pos {
		return "", 0, errors.New("missing key")
	}
	return string(data[pos:end]), end, nil
}

// stringEnd returns the position after a string of any of TOML's four kinds.
func stringEnd(data []byte, pos int) (int, error) {
	q := data[pos : pos+1]
	triple := bytes.Repeat(q, 3)
	long := bytes.HasPrefix(data[pos:], triple)
	end, at := q, pos+1
	if long {
		end, at = triple, pos+3
	}
	for at < len(data) {
		switch {
		case data[at] == '\\' && q[0] == '"':
			at += 2
		case bytes.HasPrefix(data[at:], end):
			at += len(end)
			// Up to two quotes of the content may precede the closing ones.
			for n := 0; long && n < 2 && at < len(data) && data[at] == q[0]; n++ {
				at++
			}
			return at, nil
		case data[at] == '\n' && !long:
			return 0, errors.New("unterminated string")
		default:
			at++
		}
	}
	return 0, errors.New("unterminated string")
}

// valueEnd returns the position after a value, which ends at the end of the line, a comment, or the closing bracket.
func valueEnd(data []byte, pos int) (int, error) {
	depth, end := 0, pos
	for pos < len(data) {
		switch c := data[pos]; {
		case c == '"' || c == '\'':
			next, err := stringEnd(data, pos)
			if err != nil {
				return 0, err
			}
			pos, end = next, next
			continue
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == '#':
			if depth == 0 {
				return end, nil
			}
			pos = lineEnd(data, pos)
			continue
		case c == '\n' && depth == 0:
			return end, nil
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			pos++
			continue
		}
		pos++
		end = pos
		if depth < 0 {
			return 0, errors.New("unexpected closing bracket")
		}
	}
	if depth > 0 {
		return 0, errors.New("unclosed bracket")
	}
	return end, nil
}

// mine reports whether a path is inside the entry's table.
func mine(path []string) bool {
	return len(path) >= 2 && path[0] == tomlTable && path[1] == entryName
}

// own returns the entry's statements. It returns an error if the entry is not a plain table.
func own(list []statement) (table []statement, err error) {
	headers := 0
	for _, s := range list {
		full := s.path
		if !s.header {
			full = append(slices.Clone(s.table), s.path...)
		}
		switch {
		case s.array && full[0] == tomlTable:
			return nil, fmt.Errorf("%w: %s is an array of tables", errNotTOML, strings.Join(full, "."))
		case !s.header && len(full) == 1 && full[0] == tomlTable:
			return nil, fmt.Errorf("%w: %s is not written as tables", errNotTOML, tomlTable)
		case !s.header && mine(full) && !mine(s.table):
			return nil, fmt.Errorf("%w: %s.%s is not written as a table", errNotTOML, tomlTable, entryName)
		}
		if s.header && mine(full) && len(full) == 2 {
			if headers++; headers > 1 {
				return nil, fmt.Errorf("%w: [%s.%s] occurs twice", errNotTOML, tomlTable, entryName)
			}
		}
		if mine(s.table) {
			table = append(table, s)
		}
	}
	return table, nil
}
