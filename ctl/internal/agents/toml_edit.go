package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func (tomlFile) snippet(p Program) string {
	return "[" + tomlTable + "." + entryName + "]\ncommand = " + string(quote(p.Command)) + "\nargs = " + list(p.Args) +
		"\nenv_vars = " + list(forwarded) + "\n"
}

// direct returns a key that belongs directly to the entry's own table.
func direct(table []statement, key string) (statement, bool) {
	for _, s := range table {
		if !s.header && len(s.table) == 2 && len(s.path) == 1 && s.path[0] == key {
			return s, true
		}
	}
	return statement{}, false
}

func (tomlFile) registered(data []byte) (now Program, ok bool, err error) {
	list, err := readTOML(data)
	if err != nil {
		return Program{}, false, err
	}
	table, err := own(list)
	if err != nil || len(table) == 0 {
		return Program{}, false, err
	}
	if s, ok := direct(table, "command"); ok {
		now.Command = tomlString(data[s.value:s.end])
	}
	if s, ok := direct(table, "args"); ok {
		if now.Args, ok = tomlStrings(data[s.value:s.end]); !ok {
			return Program{}, true, nil
		}
	}
	return now, true, nil
}

// tomlStrings decodes an array of strings; ok is false for anything else.
func tomlStrings(value []byte) (words []string, ok bool) {
	if len(value) < 2 || value[0] != '[' || value[len(value)-1] != ']' {
		return nil, false
	}
	inside := value[1 : len(value)-1]
	for pos := 0; pos < len(inside); {
		switch inside[pos] {
		case ' ', '\t', '\r', '\n', ',':
			pos++
		case '#':
			pos = lineEnd(inside, pos)
		case '"', '\'':
			end, err := stringEnd(inside, pos)
			if err != nil {
				return nil, false
			}
			words = append(words, tomlString(inside[pos:end]))
			pos = end
		default:
			return nil, false
		}
	}
	return words, true
}

// tomlString decodes a single-line string. It returns "" for other values.
func tomlString(value []byte) string {
	if len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'' && !bytes.HasPrefix(value, []byte("'''")) {
		return string(value[1 : len(value)-1])
	}
	var s string
	_ = json.Unmarshal(value, &s) // except for rare escapes, TOML's basic strings are valid JSON strings
	return s
}

func (f tomlFile) add(data []byte, p Program) ([]byte, error) {
	list, err := readTOML(data)
	if err != nil {
		return nil, err
	}
	table, err := own(list)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		newline = "\r\n"
	}
	if len(table) == 0 {
		text := strings.ReplaceAll(f.snippet(p), "\n", newline)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			text = newline + text
		}
		if !blank(data) {
			text = newline + text
		}
		return append(bytes.Clone(data), text...), nil
	}
	return f.update(data, table, p, newline)
}

// update sets the program of an existing entry to p and adds the variables that it needs. It keeps the other keys.
func (f tomlFile) update(data []byte, table []statement, p Program, newline string) ([]byte, error) {
	for _, key := range []string{"url", "bearer_token_env_var"} {
		if _, ok := direct(table, key); ok {
			return nil, fmt.Errorf("%w: [%s.%s] is a server with the key %s", errNotTOML, tomlTable, entryName, key)
		}
	}
	i := slices.IndexFunc(table, func(s statement) bool { return s.header && len(s.path) == 2 })
	if i < 0 {
		return nil, fmt.Errorf("%w: [%s.%s] is missing, only its subtables exist", errNotTOML, tomlTable, entryName)
	}
	now, _, err := f.registered(data)
	if err != nil {
		return nil, err
	}
	var edits []edit
	at := lineEnd(data, table[i].end) // insert new keys below the header
	set := func(key, value string, same bool) {
		switch s, ok := direct(table, key); {
		case ok && !same:
			edits = append(edits, edit{s.value, s.end, value})
		case !ok && !same:
			edits = append(edits, edit{at, at, newline + key + " = " + value})
		}
	}
	set("command", string(quote(p.Command)), now.Command == p.Command)
	set("args", list(p.Args), slices.Equal(now.Args, p.Args))
	if variables, ok := withForwarded(data, table); ok {
		set("env_vars", variables, false)
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	return apply(data, edits), nil
}

// withForwarded returns the entry's env_vars plus the missing variables that service-mcp needs. ok is false if none is
// missing or the list cannot be decoded.
func withForwarded(data []byte, table []statement) (value string, ok bool) {
	var names []string
	if s, there := direct(table, "env_vars"); there {
		if names, ok = tomlStrings(data[s.value:s.end]); !ok {
			return "", false
		}
	}
	had := len(names)
	for _, name := range forwarded {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return list(names), len(names) > had
}

func (tomlFile) remove(data []byte) ([]byte, error) {
	list, err := readTOML(data)
	if err != nil {
		return nil, err
	}
	table, err := own(list)
	if err != nil || len(table) == 0 {
		return data, err
	}
	var edits []edit
	for i := 0; i < len(list); i++ {
		if !list[i].header || !mine(list[i].path) {
			continue
		}
		last := i
		for last+1 < len(list) && !list[last+1].header {
			last++
		}
		start, end := list[i].start, min(len(data), lineEnd(data, list[last].end)+1)
		if start >= 2 && bytes.HasSuffix(data[:start], []byte("\n\n")) {
			start-- // also remove the blank line before it
		} else if bytes.HasSuffix(data[:start], []byte("\r\n\r\n")) {
			start -= 2
		}
		edits = append(edits, edit{start, end, ""})
	}
	return apply(data, edits), nil
}

// others returns all statements except the entry's, for comparison.
func (tomlFile) others(data []byte) (string, error) {
	list, err := readTOML(data)
	if err != nil {
		return "", err
	}
	if _, err := own(list); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, s := range list {
		if !mine(s.table) {
			out.Write(data[s.start:s.end])
			out.WriteByte('\n')
		}
	}
	return out.String(), nil
}
