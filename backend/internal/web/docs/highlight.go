package docs

import (
	"html"
	"regexp"
	"strings"
)

// grammar matches the words of a language to highlight. Each group of the pattern is rendered with the class of the
// same index: c for a comment, s for a string, k for a keyword, n for a number, and p for a property.
type grammar struct {
	pattern *regexp.Regexp
	classes []string
}

const (
	quotedText = `"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`
	numbers    = `\b[0-9][0-9_.]*\b`
)

// keywords are the keywords of the languages with braces, which the documentation uses in short examples.
const keywords = `async|await|break|case|catch|class|const|continue|default|defer|else|export|extends|false|finally|` +
	`for|func|function|go|if|import|in|interface|let|map|new|nil|null|of|package|range|return|select|static|struct|` +
	`switch|this|throw|true|try|type|typeof|undefined|var|while`

const pythonKeywords = `and|as|async|await|break|class|continue|def|elif|else|except|False|finally|for|` +
	`from|if|import|in|is|lambda|None|not|or|pass|raise|return|True|try|while|with|yield`

var grammars = func() map[string]grammar {
	braces := grammar{regexp.MustCompile(`(//[^\n]*|/\*(?s:.*?)\*/)|(` + quotedText + "|`[^`]*`" + `)|(` +
		numbers + `)|\b(` + keywords + `)\b`), []string{"", "c", "s", "n", "k"}}
	return map[string]grammar{
		"json": {regexp.MustCompile(`("(?:[^"\\\n]|\\.)*")\s*:|("(?:[^"\\\n]|\\.)*")|(-?` + numbers +
			`)|\b(true|false|null)\b`), []string{"", "p", "s", "n", "k"}},
		"sh": {regexp.MustCompile(`(?m)(?:^|\s)(#[^\n]*)|(` + quotedText +
			`)|(?:\s)(--?[a-zA-Z][a-zA-Z-]*)|(\$\w+|\$\{\w+\})`),
			[]string{"", "c", "s", "k", "p"}},
		"yaml": {regexp.MustCompile(`(?m)(?:^|\s)(#[^\n]*)|^[ -]*([\w.-]+):|(` + quotedText + `)|\b(true|false|null)\b`),
			[]string{"", "c", "p", "s", "k"}},
		"py": {regexp.MustCompile(`(#[^\n]*)|(` + quotedText + `)|(` + numbers + `)|\b(` + pythonKeywords + `)\b`),
			[]string{"", "c", "s", "n", "k"}},
		"go": braces, "js": braces, "ts": braces,
	}
}()

// highlight returns code as escaped HTML in which comments, strings, keywords and the like have a class. It only
// escapes code in an unknown language.
func highlight(language, code string) string {
	g, ok := grammars[language]
	if !ok {
		return html.EscapeString(code)
	}
	var out strings.Builder
	at := 0
	for _, group := range g.pattern.FindAllStringSubmatchIndex(code, -1) {
		for i, class := range g.classes {
			if from, to := group[2*i], group[2*i+1]; class != "" && from >= 0 {
				out.WriteString(between(language, code[at:from]))
				out.WriteString(`<span class="` + class + `">` + html.EscapeString(code[from:to]) + `</span>`)
				at = to
			}
		}
	}
	out.WriteString(between(language, code[at:]))
	return out.String()
}

// between escapes the code between two highlighted words. JSON frames are one long line, which may be broken after a
// comma or a colon.
func between(language, code string) string {
	code = html.EscapeString(code)
	if language == "json" {
		code = strings.NewReplacer(", ", ", ", ",", ",<wbr>", ": ", ": ", ":", ":<wbr>").Replace(code)
	}
	return code
}
