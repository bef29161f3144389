package scaffold

import (
	"slices"
	"strings"

	"github.com/service-dev/service/glasses"
)

// Limits on an app's recorded constants and on the calls that announce phrases.
const (
	maxConstants = 2000
	maxConstant  = 8000 // bytes
)

// constant is a named list or text of the app. Its strings are phrases if the app announces it.
type constant struct {
	name, file string
	phrases    []Use
}

// announcement is a call that announces phrases by the name of a constant.
type announcement struct {
	names []string
	at    Use
}

var (
	// constantPattern matches a name and the beginning of a list, a map of phrases or a text, in all languages.
	constantPattern = pattern(`([A-Za-z_]\w*)\s*(?::[^=\n]{0,80}|:)?=\s*(?:\[\]string\s*|map\[string\]\w+\s*|` +
		`(?:(?:mutable)?[lL]istOf|setOf|arrayOf|tuple|list|set|frozenset|Object\.freeze|new Set)\s*)?([\[({"'])`)
	aliasPattern = pattern(`\b([A-Za-z_]\w*)\s+as\s+([A-Za-z_]\w*)`)
	namePattern  = pattern(`[A-Za-z_][\w.]*\s*[(:=]?`)
	keyPattern   = pattern(`^\s*:`)
)

// plainWords are words that may occur in a call without naming the announced constant.
var plainWords = []string{"for", "in", "if", "else", "await", "try", "as", "new", "const", "let", "this", "self",
	"string", "true", "false", "True", "False", "None", "null", "nil", "ctx", "it"}

// constants records the constants that a file defines, and the names under which it imports others.
func (in *inspector) constants(name, text string) {
	line, counted := 1, 0
	for _, m := range constantPattern().FindAllStringSubmatchIndex(text, maxConstants) {
		if len(in.known) >= maxConstants {
			return
		}
		open := m[4]
		c := constant{name: text[m[2]:m[3]], file: name}
		rest := text[open:min(len(text), open+maxConstant)]
		if rest[0] != '"' && rest[0] != '\'' {
			rest = rest[:1+closingBracket(rest[1:])]
		} else if end := stringPattern().FindStringIndex(rest); end != nil && end[0] == 0 {
			rest = rest[:end[1]]
		} else {
			continue
		}
		line += strings.Count(text[counted:open], "\n")
		counted = open
		for _, s := range phraseStrings(rest) {
			at := line + strings.Count(rest[:s.at], "\n")
			c.phrases = append(c.phrases, Use{s.text, name, at})
		}
		if len(c.phrases) > 0 {
			in.known = append(in.known, c)
		}
	}
	for _, m := range aliasPattern().FindAllStringSubmatch(text, 200) {
		if len(in.aliases) < maxConstants {
			in.aliases[name+" "+m[2]] = m[1]
		}
	}
}

// quoted is a string in a text, with its position.
type quoted struct {
	text string
	at   int
}

// phraseStrings returns the strings of a list, or a map's keys.
func phraseStrings(text string) []quoted {
	var all, keys []quoted
	for _, m := range stringPattern().FindAllStringIndex(text, glasses.MaxPhrases+1) {
		s := quoted{text[m[0]+1 : m[1]-1], m[0]}
		if plain, err := unquote(s.text); err == nil {
			s.text = plain
		}
		all = append(all, s)
		if strings.HasPrefix(text, "{") && keyPattern().MatchString(text[m[1]:]) {
			keys = append(keys, s)
		}
	}
	if len(keys) > 0 {
		return keys
	}
	return all
}

// announced records a call whose argument is the name of a constant or the result of a function.
func (in *inspector) announced(arguments string, at Use) {
	written := stringPattern().MatchString(arguments)
	arguments = stringPattern().ReplaceAllString(arguments, "")
	var names, called []string
	for _, token := range namePattern().FindAllString(arguments, 50) {
		name := strings.TrimSpace(strings.TrimRight(token, "(:= \t\n"))
		parts := strings.Split(strings.Trim(name, "."), ".")
		switch token[len(token)-1] {
		case ':', '=': // the label of an argument
			continue
		case '(':
			called = append(called, parts[len(parts)-1])
			parts = parts[:len(parts)-1]
		}
		for _, part := range parts {
			if part != "" && !slices.Contains(plainWords, part) {
				names = append(names, part)
			}
		}
	}
	if len(names) == 0 && !written {
		names = called
	}
	if len(names) > 0 && len(in.announcements) < maxUses {
		in.announcements = append(in.announcements, announcement{names, at})
	}
}

// resolve looks up the constants that the app announces by name. It reports a name that it does not find, or that
// several files define.
func (in *inspector) resolve() {
	for _, a := range in.announcements {
		found := false
		for _, name := range a.names {
			if c, ok := in.constantOf(name, a.at.File); ok {
				found = true
				in.found.Phrases = append(in.found.Phrases, c.phrases...)
			}
		}
		if !found {
			a.at.Name = a.names[0]
			in.found.UnknownPhrases = append(in.found.UnknownPhrases, a.at)
		}
		if len(in.found.Phrases) > maxUses {
			in.found.Phrases = in.found.Phrases[:maxUses]
			return
		}
	}
	i := slices.IndexFunc(in.found.Commands, func(u Use) bool { return u.Name == glasses.TypePhrasesAnnounce })
	if i >= 0 && !in.announces { // the app announces it in a frame that it builds itself
		in.found.UnknownPhrases = append(in.found.UnknownPhrases, in.found.Commands[i])
	}
}

// constantOf returns the constant called name in a file. If the file does not define one, constantOf returns the
// project's only constant called name.
func (in *inspector) constantOf(name, file string) (constant, bool) {
	if original, ok := in.aliases[file+" "+name]; ok {
		name = original
	}
	var same, all []constant
	for _, c := range in.known {
		if c.name != name {
			continue
		}
		all = append(all, c)
		if c.file == file {
			same = append(same, c)
		}
	}
	if len(same) > 0 {
		all = same
	}
	if len(all) != 1 {
		return constant{}, false
	}
	return all[0], true
}
