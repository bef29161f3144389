package docs

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	manual "github.com/service-dev/service/docs"
)

// markdown renders the subset of Markdown that the documentation uses: headings, paragraphs, lists, fenced code,
// tables, and inline code, emphasis and links. It escapes all text. Links may lead to pages of the documentation or to
// https URLs. The template renders the title, the only heading of the first level.
func markdown(text string) (template.HTML, []Link) {
	m := &mdWriter{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	for m.at < len(m.lines) {
		m.block()
	}
	return template.HTML(m.out.String()), m.outline //nolint:gosec // every text passes through html.EscapeString below
}

type mdWriter struct {
	lines   []string
	at      int
	out     strings.Builder
	outline []Link
}

var (
	mdHeading  = regexp.MustCompile(`^(#{1,4}) +(.+?)\s*$`)
	mdBullet   = regexp.MustCompile(`^([-*]) +(.*)$`)
	mdNumber   = regexp.MustCompile(`^([0-9]{1,3})\. +(.*)$`)
	mdTableBar = regexp.MustCompile(`^\|[-:| ]+\|?\s*$`)
	mdInline   = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^\\]]+)\\]\\(([^()\\s]+)\\)")
)

// startsBlock reports whether a line starts a block and so ends a paragraph.
func startsBlock(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "|") ||
		mdHeading.MatchString(line) || mdBullet.MatchString(line) || mdNumber.MatchString(line)
}

func (m *mdWriter) block() {
	line := m.lines[m.at]
	switch {
	case strings.TrimSpace(line) == "":
		m.at++
	case strings.HasPrefix(line, "```"):
		m.code()
	case mdHeading.MatchString(line):
		m.heading(mdHeading.FindStringSubmatch(line))
	case strings.HasPrefix(line, "|") && m.at+1 < len(m.lines) && mdTableBar.MatchString(m.lines[m.at+1]):
		m.table()
	case mdBullet.MatchString(line):
		m.list("ul", mdBullet)
	case mdNumber.MatchString(line):
		m.list("ol", mdNumber)
	default:
		text := []string{line}
		for m.at++; m.at < len(m.lines) && !startsBlock(m.lines[m.at]); m.at++ {
			text = append(text, m.lines[m.at])
		}
		fmt.Fprintf(&m.out, "<p>%s</p>\n", inline(strings.Join(text, "\n")))
	}
}

func (m *mdWriter) heading(part []string) {
	m.at++
	level := len(part[1])
	if level == 1 {
		return
	}
	anchor := manual.Anchor(part[2])
	if level == 2 {
		m.outline = append(m.outline, Link{Title: part[2], URL: "#" + anchor})
	}
	// The heading links to itself, so that a section's address can be copied.
	fmt.Fprintf(&m.out, "<h%d id=\"%s\"><a class=\"anchor\" href=\"#%s\">%s</a></h%d>\n", level, anchor, anchor,
		inlineCode(part[2]), level)
}

func (m *mdWriter) code() {
	language, kind, _ := strings.Cut(strings.TrimPrefix(m.lines[m.at], "```"), " ")
	var text []string
	for m.at++; m.at < len(m.lines) && !strings.HasPrefix(m.lines[m.at], "```"); m.at++ {
		text = append(text, m.lines[m.at])
	}
	m.at++
	code := strings.Join(text, "\n")
	// The block is focusable, because it scrolls sideways and must be reachable with the keyboard.
	block := fmt.Sprintf("<pre tabindex=\"0\" data-language=\"%s\"><code>%s</code></pre>\n",
		html.EscapeString(language), highlight(language, code))
	m.out.WriteString(beside(block, kind, code))
}

// list renders a list. Indented lines below an item belong to it. A numbered list keeps its first number, so that it
// can continue after a block between two items.
func (m *mdWriter) list(tag string, item *regexp.Regexp) {
	start := ""
	if first := item.FindStringSubmatch(m.lines[m.at])[1]; tag == "ol" && first != "1" {
		start = fmt.Sprintf(" start=\"%s\"", first)
	}
	fmt.Fprintf(&m.out, "<%s%s>\n", tag, start)
	for m.at < len(m.lines) {
		part := item.FindStringSubmatch(m.lines[m.at])
		if part == nil {
			break
		}
		m.out.WriteString("<li>" + m.item(part[2], len(m.lines[m.at])-len(part[2])) + "</li>\n")
		for m.isBlank(m.at) && m.at+1 < len(m.lines) && item.MatchString(m.lines[m.at+1]) {
			m.at++
		}
	}
	fmt.Fprintf(&m.out, "</%s>\n", tag)
}

// item renders one item. Its continuation lines are indented by up to indent spaces.
func (m *mdWriter) item(first string, indent int) string {
	text, hasBlocks := []string{first}, false
	for m.at++; m.at < len(m.lines); m.at++ {
		line := m.lines[m.at]
		isInside := strings.HasPrefix(line, "  ") ||
			m.isBlank(m.at) && m.at+1 < len(m.lines) && strings.HasPrefix(m.lines[m.at+1], "  ")
		if !isInside && startsBlock(line) {
			break
		}
		line = line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):]
		hasBlocks = hasBlocks || startsBlock(line)
		text = append(text, line)
	}
	if !hasBlocks {
		return inline(strings.Join(text, "\n"))
	}
	inner := mdWriter{lines: text}
	for inner.at < len(inner.lines) {
		inner.block()
	}
	return inner.out.String()
}

func (m *mdWriter) isBlank(at int) bool {
	return at < len(m.lines) && strings.TrimSpace(m.lines[at]) == ""
}

func (m *mdWriter) table() {
	m.out.WriteString("<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr>")
	for _, cell := range cells(m.lines[m.at]) {
		fmt.Fprintf(&m.out, "<th scope=\"col\">%s</th>", inline(cell))
	}
	m.out.WriteString("</tr></thead>\n<tbody>\n")
	for m.at += 2; m.at < len(m.lines) && strings.HasPrefix(m.lines[m.at], "|"); m.at++ {
		m.out.WriteString("<tr>")
		for _, cell := range cells(m.lines[m.at]) {
			fmt.Fprintf(&m.out, "<td>%s</td>", inline(cell))
		}
		m.out.WriteString("</tr>\n")
	}
	m.out.WriteString("</tbody></table></div>\n")
}

// cells splits a table row at its vertical bars; \| is a literal bar.
func cells(row string) []string {
	row = strings.ReplaceAll(strings.TrimSpace(row), `\|`, "\x00")
	row = strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|")
	parts := strings.Split(row, "|")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(strings.ReplaceAll(p, "\x00", "|"))
	}
	return parts
}

// inline renders code, emphasis and links, and escapes all text.
func inline(text string) string {
	var out strings.Builder
	at := 0
	for _, group := range mdInline.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(html.EscapeString(text[at:group[0]]))
		at = group[1]
		switch {
		case group[2] >= 0:
			fmt.Fprintf(&out, "<code>%s</code>", html.EscapeString(text[group[2]:group[3]]))
		case group[4] >= 0:
			fmt.Fprintf(&out, "<strong>%s</strong>", inline(text[group[4]:group[5]]))
		default:
			out.WriteString(anchor(text[group[6]:group[7]], text[group[8]:group[9]]))
		}
	}
	out.WriteString(html.EscapeString(text[at:]))
	return out.String()
}

// anchor renders a link to a page, a section or an https URL. Any other link remains text.
func anchor(label, to string) string {
	page, _, _ := strings.Cut(to, "#")
	if _, ok := manual.Find(page); ok {
		to = "/docs/" + to
	} else if page != "" && !strings.HasPrefix(to, "https://") {
		return inlineCode(label)
	}
	return fmt.Sprintf(`<a href="%s">%s</a>`, html.EscapeString(to), inlineCode(label))
}

// inlineCode renders the text of a link, which may contain code.
func inlineCode(label string) string {
	parts := strings.Split(label, "`")
	if len(parts)%2 == 0 {
		return html.EscapeString(label)
	}
	for i, p := range parts {
		parts[i] = html.EscapeString(p)
		if i%2 == 1 {
			parts[i] = "<code>" + parts[i] + "</code>"
		}
	}
	return strings.Join(parts, "")
}
