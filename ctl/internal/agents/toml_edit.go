package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func (tomlFile) snippet(command string) string {
	return "[" + tomlTable + "." + entryName + "]\ncommand = " + string(quote(command)) + "\nargs = []\n"
}

// direct finds a key that stands directly in the entry's table.
func direct(table []statement, key string) (statement, bool) {
	for _, s := range table {
		if !s.header && len(s.table) == 2 && len(s.path) == 1 && s.path[0] == key {
			return s, true
		}
	}
	return statement{}, false
}

func (tomlFile) registered(data []byte) (command string, ok bool, err error) {
	list, err := readTOML(data)
	if err != nil {
		return "", false, err
	}
	table, err := own(list)
	if err != nil || len(table) == 0 {
		return "", false, err
	}
	s, ok := direct(table, "command")
	if !ok {
		return "", true, nil
	}
	return tomlString(data[s.value:s.end]), true, nil
}

// tomlString reads a string of one line; other values give nothing.
func tomlString(value []byte) string {
	if len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'' && !bytes.HasPrefix(value, []byte("'''")) {
		return string(value[1 : len(value)-1])
	}
	var s string
	_ = json.Unmarshal(value, &s) // TOML's basic strings are JSON's but for rare escapes
	return s
}

func (f tomlFile) add(data []byte, command string) ([]byte, error) {
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
		text := strings.ReplaceAll(f.snippet(command), "\n", newline)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			text = newline + text
		}
		if !blank(data) {
			text = newline + text
		}
		return append(bytes.Clone(data), text...), nil
	}
	return f.update(data, table, command, newline)
}

// update points the entry that is there at command. What else it says stays.
func (f tomlFile) update(data []byte, table []statement, command, newline string) ([]byte, error) {
	for _, key := range []string{"url", "bearer_token_env_var"} {
		if _, ok := direct(table, key); ok {
			return nil, fmt.Errorf("%w: [%s.%s] names a server that is reached by %s", errNotTOML, tomlTable, entryName, key)
		}
	}
	i := slices.IndexFunc(table, func(s statement) bool { return s.header && len(s.path) == 2 })
	if i < 0 {
		return nil, fmt.Errorf("%w: [%s.%s] itself is missing", errNotTOML, tomlTable, entryName)
	}
	var edits []edit
	if s, ok := direct(table, "command"); ok {
		edits = append(edits, edit{s.value, s.end, string(quote(command))})
	} else {
		at := lineEnd(data, table[i].end)
		edits = append(edits, edit{at, at, newline + "command = " + string(quote(command))})
	}
	if s, ok := direct(table, "args"); ok && strings.Join(strings.Fields(string(data[s.value:s.end])), "") != "[]" {
		edits = append(edits, edit{s.value, s.end, "[]"})
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	return apply(data, edits), nil
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
			start-- // the blank line before it
		} else if bytes.HasSuffix(data[:start], []byte("\r\n\r\n")) {
			start -= 2
		}
		edits = append(edits, edit{start, end, ""})
	}
	return apply(data, edits), nil
}

// others is every statement but the entry's, for comparison.
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
