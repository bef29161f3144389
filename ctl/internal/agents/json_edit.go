package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// jsonFile is a configuration whose servers are an object under one key of the root.
type jsonFile struct {
	key string // mcpServers, or servers
	// before and after are what the agent wants in an entry around the program.
	before, after []pair
	oneList       bool // the program and its arguments are one list under "command"
}

// entry is what is registered.
func (f jsonFile) entry(p Program) []pair {
	e := slices.Clone(f.before)
	if f.oneList {
		e = append(e, pair{"command", list(append([]string{p.Command}, p.Args...))})
	} else {
		e = append(e, pair{"command", string(quote(p.Command))}, pair{"args", list(p.Args)})
	}
	return append(e, f.after...)
}

// pair is a key and its value as JSON.
type pair struct{ key, value string }

func (f jsonFile) snippet(p Program) string {
	return "{\n  " + string(quote(f.key)) + ": {\n    " + `"` + entryName + `": ` + layout(f.entry(p), "    ", "  ", "\n") + "\n  }\n}\n"
}

// layout writes an object whose closing brace stands at indent.
func layout(pairs []pair, indent, unit, newline string) string {
	lines := make([]string, len(pairs))
	for i, p := range pairs {
		lines[i] = indent + unit + string(quote(p.key)) + ": " + p.value
	}
	return "{" + newline + strings.Join(lines, ","+newline) + newline + indent + "}"
}

// servers finds the object of servers; ok is false when the root has none.
func (f jsonFile) servers(data []byte) (root span, servers member, ok bool, err error) {
	root, err = readJSON(data)
	if err != nil {
		return root, servers, false, err
	}
	if root.kind != '{' {
		return root, servers, false, fmt.Errorf("%w: it is not an object", errNotJSON)
	}
	servers, ok, err = root.find(f.key)
	if err == nil && ok && servers.value.kind != '{' {
		err = fmt.Errorf("%w: %q is not an object", errNotJSON, f.key)
	}
	return root, servers, ok, err
}

func (f jsonFile) registered(data []byte) (now Program, ok bool, err error) {
	if blank(data) {
		return Program{}, false, nil
	}
	_, servers, ok, err := f.servers(data)
	if err != nil || !ok {
		return Program{}, false, err
	}
	mine, ok, err := servers.value.find(entryName)
	if err != nil || !ok {
		return Program{}, false, err
	}
	var entry struct{ Command, Args json.RawMessage }
	_ = json.Unmarshal(mine.value.plain(data), &entry) // an entry of another shape has no command
	if words := listOf(entry.Command); f.oneList && len(words) > 0 {
		return Program{Command: words[0], Args: words[1:]}, true, nil
	}
	_ = json.Unmarshal(entry.Command, &now.Command)
	now.Args = listOf(entry.Args)
	return now, true, nil
}

func (f jsonFile) add(data []byte, p Program) ([]byte, error) {
	if blank(data) {
		return []byte(f.snippet(p)), nil
	}
	root, servers, ok, err := f.servers(data)
	if err != nil {
		return nil, err
	}
	style := styleOf(data, root)
	if !ok {
		inner := style.unit + string(quote(entryName)) + ": " + layout(f.entry(p), style.unit+style.unit, style.unit, style.newline)
		value := "{" + style.newline + style.unit + inner + style.newline + style.unit + "}"
		return style.insert(data, root, f.key, value, ""), nil
	}
	mine, ok, err := servers.value.find(entryName)
	if err != nil {
		return nil, err
	}
	if !ok {
		return style.insert(data, servers.value, entryName, layout(f.entry(p), style.unit+style.unit, style.unit, style.newline), style.unit), nil
	}
	return f.update(data, style, mine, p)
}

// update points an entry that is there at p. What else it says, such as its environment, stays.
func (f jsonFile) update(data []byte, style style, mine member, p Program) ([]byte, error) {
	command, ok, err := mine.value.find("command")
	if err != nil {
		return nil, err
	}
	if now, _, err := f.registered(data); err == nil && now.equal(p) {
		return data, nil
	}
	switch {
	case !ok: // not a program that is started: another kind of server
		return splice(data, mine.value.start, mine.value.end, layout(f.entry(p), style.unit+style.unit, style.unit, style.newline)), nil
	case f.oneList:
		return splice(data, command.value.start, command.value.end, list(append([]string{p.Command}, p.Args...))), nil
	}
	args, ok, err := mine.value.find("args")
	if err != nil {
		return nil, err
	}
	edits := []edit{{command.value.start, command.value.end, string(quote(p.Command))}}
	switch {
	case ok && !slices.Equal(listOf(args.value.plain(data)), p.Args):
		edits = append(edits, edit{args.value.start, args.value.end, list(p.Args)})
	case !ok && len(p.Args) > 0: // behind every other member, so that command stays where it is
		data = style.insert(data, mine.value, "args", list(p.Args), style.unit+style.unit)
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	return apply(data, edits), nil
}

func (f jsonFile) remove(data []byte) ([]byte, error) {
	if blank(data) {
		return data, nil
	}
	_, servers, ok, err := f.servers(data)
	if err != nil || !ok {
		return data, err
	}
	mine, ok, err := servers.value.find(entryName)
	if err != nil || !ok {
		return data, err
	}
	i := slices.IndexFunc(servers.value.members, func(m member) bool { return m.key == entryName })
	start := mine.keyStart
	for start > 0 && (data[start-1] == ' ' || data[start-1] == '\t') {
		start--
	}
	if start > 0 && data[start-1] == '\n' {
		start--
		if start > 0 && data[start-1] == '\r' {
			start--
		}
	} else {
		start = mine.keyStart
	}
	edits := []edit{{start, mine.value.end, ""}}
	if mine.comma >= 0 {
		edits = append(edits, edit{mine.comma, mine.comma + 1, ""})
	} else if i > 0 { // the last one: the comma before it would be left over
		before := servers.value.members[i-1].comma
		edits = append([]edit{{before, before + 1, ""}}, edits...)
	}
	return apply(data, edits), nil
}

// others is the file's content without the entry, for comparison.
func (f jsonFile) others(data []byte) (string, error) {
	if blank(data) {
		return "{}", nil
	}
	root, servers, ok, err := f.servers(data)
	if err != nil {
		return "", err
	}
	if ok {
		rest := slices.DeleteFunc(slices.Clone(servers.value.members), func(m member) bool { return m.key == entryName })
		i := slices.IndexFunc(root.members, func(m member) bool { return m.key == f.key })
		if len(rest) == 0 { // an empty object says what none says
			root.members = slices.Delete(root.members, i, i+1)
		} else {
			root.members[i].value.members = rest
		}
	}
	return string(root.plain(data)), nil
}

func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) == 0
}

// edit replaces data[start:end].
type edit struct {
	start, end int
	text       string
}

// apply makes edits that do not overlap and are in order.
func apply(data []byte, edits []edit) []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(data[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(data[at:])
	return out.Bytes()
}

func splice(data []byte, start, end int, text string) []byte {
	return apply(data, []edit{{start, end, text}})
}
