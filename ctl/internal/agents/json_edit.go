package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

var errNotJSON = errors.New("the file is not JSON that can be changed safely")

// byteOrderMark is the UTF-8 byte order mark, which some editors write at the start of a file.
const byteOrderMark = "\xef\xbb\xbf"

// jsonFile is a JSON configuration file that lists its servers in the object key. It may contain comments and
// trailing commas.
type jsonFile struct {
	key string // mcpServers or servers
	// before and after are additional members of an entry that the agent requires, placed before and after the program.
	before, after []pair
	oneList       bool // the program and its arguments are one list under "command"
}

// pair is a key with its value encoded as JSON.
type pair struct{ key, value string }

// entry returns the members of the entry to add.
func (f jsonFile) entry(p Program) []pair {
	e := slices.Clone(f.before)
	if f.oneList {
		e = append(e, pair{"command", list(append([]string{p.Command}, p.Args...))})
	} else {
		e = append(e, pair{"command", string(quote(p.Command))}, pair{"args", list(p.Args)})
	}
	return append(e, f.after...)
}

func (f jsonFile) snippet(p Program) string {
	servers := layout([]pair{{entryName, layout(f.entry(p), "    ", "  ", "\n")}}, "  ", "  ", "\n")
	return layout([]pair{{f.key, servers}}, "", "  ", "\n") + "\n"
}

// layout formats an object whose closing brace is indented by indent.
func layout(pairs []pair, indent, unit, newline string) string {
	lines := make([]string, len(pairs))
	for i, p := range pairs {
		lines[i] = indent + unit + string(quote(p.key)) + ": " + p.value
	}
	return "{" + newline + strings.Join(lines, ","+newline) + newline + indent + "}"
}

// jsonDocument is a parsed file. pack reproduces every byte that no edit changed.
type jsonDocument struct {
	root    hujson.Value
	object  *hujson.Object // the root object
	servers *hujson.Object // nil if the root has no servers
	bom     bool
}

// parse parses a file that is not blank.
func (f jsonFile) parse(data []byte) (d jsonDocument, err error) {
	text, bom := bytes.CutPrefix(data, []byte(byteOrderMark))
	d.bom = bom
	if !utf8.Valid(text) {
		return d, fmt.Errorf("%w: it is not UTF-8", errNotJSON)
	}
	// The library requires a newline after a comment at the end of the file.
	if d.root, err = hujson.Parse(append(bytes.Clone(text), '\n')); err != nil {
		return d, fmt.Errorf("%w: %s", errNotJSON, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	var ok bool
	if d.object, ok = d.root.Value.(*hujson.Object); !ok {
		return d, fmt.Errorf("%w: the root must be an object", errNotJSON)
	}
	i, err := indexOf(d.object, f.key)
	if err != nil || i < 0 {
		return d, err
	}
	if d.servers, ok = d.object.Members[i].Value.Value.(*hujson.Object); !ok {
		return d, fmt.Errorf("%w: %q must be an object", errNotJSON, f.key)
	}
	return d, nil
}

// entry returns the index of our entry among the servers, or -1.
func (d jsonDocument) entry() (int, error) {
	if d.servers == nil {
		return -1, nil
	}
	return indexOf(d.servers, entryName)
}

// pack returns the file's text.
func (d jsonDocument) pack() []byte {
	text := bytes.TrimSuffix(d.root.Pack(), []byte("\n"))
	if d.bom {
		text = append([]byte(byteOrderMark), text...)
	}
	return text
}

// indexOf returns the index of an object's member, or -1. It returns an error for a duplicate key.
func indexOf(object *hujson.Object, key string) (int, error) {
	found := -1
	for i, m := range object.Members {
		if m.Name.Value.(hujson.Literal).String() != key {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("%w: it has %q twice", errNotJSON, key)
		}
		found = i
	}
	return found, nil
}

// standard encodes a value as standard JSON without white space.
func standard(v hujson.Value) []byte {
	v = v.Clone()
	v.Minimize()
	return v.Pack()
}

func (f jsonFile) registered(data []byte) (now Program, ok bool, err error) {
	if blank(data) {
		return Program{}, false, nil
	}
	d, i, err := f.find(data)
	if err != nil || i < 0 {
		return Program{}, false, err
	}
	var entry struct{ Command, Args json.RawMessage }
	_ = json.Unmarshal(standard(d.servers.Members[i].Value), &entry) // an entry with other types contains no command
	if words := listOf(entry.Command); f.oneList && len(words) > 0 {
		return Program{Command: words[0], Args: words[1:]}, true, nil
	}
	_ = json.Unmarshal(entry.Command, &now.Command)
	now.Args = listOf(entry.Args)
	return now, true, nil
}

// find parses a file and returns the index of the entry, or -1.
func (f jsonFile) find(data []byte) (jsonDocument, int, error) {
	d, err := f.parse(data)
	if err != nil {
		return d, -1, err
	}
	i, err := d.entry()
	return d, i, err
}

func (f jsonFile) add(data []byte, p Program) ([]byte, error) {
	if blank(data) {
		return []byte(f.snippet(p)), nil
	}
	d, i, err := f.find(data)
	if err != nil {
		return nil, err
	}
	style := styleOf(data, d.object)
	entry := layout(f.entry(p), style.unit+style.unit, style.unit, style.newline)
	switch {
	case d.servers == nil:
		style.insert(d.object, f.key, layout([]pair{{entryName, entry}}, style.unit, style.unit, style.newline), "")
	case i < 0:
		style.insert(d.servers, entryName, entry, style.unit)
	default:
		if now, _, err := f.registered(data); err == nil && now.equal(p) {
			return data, nil
		}
		if err := refuseForeign(d.servers.Members[i].Value); err != nil {
			return nil, err
		}
		if err := f.update(&d.servers.Members[i].Value, style, entry, p); err != nil {
			return nil, err
		}
	}
	return d.pack(), nil
}

// refuseForeign returns an error if the entry with our name does not start a command, for example if it has a URL with
// credentials. This package never writes such an entry.
func refuseForeign(value hujson.Value) error {
	object, isObject := value.Value.(*hujson.Object)
	if !isObject || len(object.Members) == 0 {
		return nil
	}
	if command, err := indexOf(object, "command"); err != nil || command >= 0 {
		return err
	}
	return fmt.Errorf("%w: its server %q is not started by a command; rename or remove it", errNotJSON, entryName)
}

// update sets the program of an existing entry to p. It keeps the other members, such as the environment.
func (f jsonFile) update(value *hujson.Value, style style, entry string, p Program) error {
	object, isObject := value.Value.(*hujson.Object)
	if !isObject {
		value.Value = hujson.Literal(entry)
		return nil
	}
	command, err := indexOf(object, "command")
	if err != nil {
		return err
	}
	switch {
	case command < 0: // the entry is empty
		value.Value = hujson.Literal(entry)
		return nil
	case f.oneList:
		object.Members[command].Value.Value = hujson.Literal(list(append([]string{p.Command}, p.Args...)))
		return nil
	}
	args, err := indexOf(object, "args")
	if err != nil {
		return err
	}
	object.Members[command].Value.Value = hujson.Literal(quote(p.Command))
	switch {
	case args >= 0 && !slices.Equal(listOf(standard(object.Members[args].Value)), p.Args):
		object.Members[args].Value.Value = hujson.Literal(list(p.Args))
	case args < 0 && len(p.Args) > 0:
		style.insert(object, "args", list(p.Args), style.unit+style.unit)
	}
	return nil
}

func (f jsonFile) remove(data []byte) ([]byte, error) {
	if blank(data) {
		return data, nil
	}
	d, i, err := f.find(data)
	if err != nil || i < 0 {
		return data, err
	}
	if err := refuseForeign(d.servers.Members[i].Value); err != nil {
		return data, err
	}
	members, removed := d.servers.Members, d.servers.Members[i]
	kept := slices.Concat(removed.Name.BeforeExtra, removed.Value.AfterExtra) // keep the comments around the entry
	last := i == len(members)-1
	next := &d.servers.AfterExtra
	if !last {
		next = &members[i+1].Name.BeforeExtra
	}
	if rest := bytes.TrimLeft(*next, " \t"); len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r') {
		kept = trimLine(kept) // a newline follows, so that a line comment does not swallow the next token
	}
	if last && i > 0 {
		if previous := &members[i-1].Value; removed.Value.AfterExtra == nil { // the object has no trailing comma
			kept = append(previous.AfterExtra, kept...)
			previous.AfterExtra = nil
		} else if previous.AfterExtra == nil {
			previous.AfterExtra = hujson.Extra{}
		}
	}
	*next = slices.Concat(kept, *next)
	d.servers.Members = slices.Delete(members, i, i+1)
	return d.pack(), nil
}

// trimLine removes the newline and indentation at the end of an extra.
func trimLine(extra hujson.Extra) hujson.Extra {
	line := bytes.TrimRight(extra, " \t")
	if !bytes.HasSuffix(line, []byte("\n")) {
		return extra
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// others returns the file's content without our entry, for comparison.
func (f jsonFile) others(data []byte) (string, error) {
	if blank(data) {
		return "{}", nil
	}
	d, err := f.parse(data)
	if err != nil {
		return "", err
	}
	if i, err := d.entry(); err == nil && i >= 0 {
		d.servers.Members = slices.Delete(d.servers.Members, i, i+1)
	}
	if d.servers != nil && len(d.servers.Members) == 0 { // an empty object is equivalent to a missing one
		i, _ := indexOf(d.object, f.key)
		d.object.Members = slices.Delete(d.object.Members, i, i+1)
	}
	return string(standard(d.root)), nil
}

func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))) == 0
}

// quote writes a JSON string without HTML escapes.
func quote(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
