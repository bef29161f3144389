package manpages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// page returns the man page of a command in roff, with the man macros.
func page(cmd *cobra.Command, version, date string) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 %s \"%s\" \"The service\"\n", escape(strings.ToUpper(name)), date,
		escape(cmd.Root().Name()+" "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name), escape(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escape(cmd.UseLine()))
	if len(children(cmd)) > 0 {
		fmt.Fprintf(&b, ".br\n.B %s\n.I COMMAND\n", escape(cmd.CommandPath()))
	}
	b.WriteString(".SH DESCRIPTION\n" + paragraphs(cmp.Or(cmd.Long, cmd.Short+".")))
	writeCommands(&b, cmd)
	writeOptions(&b, "OPTIONS", cmd.NonInheritedFlags())
	writeOptions(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	for _, topic := range cmd.Commands() {
		if topic.IsAdditionalHelpTopicCommand() && topic.Long != "" {
			fmt.Fprintf(&b, ".SH %s\n%s", escape(strings.ToUpper(topic.Name())), literal(topic.Long))
		}
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + literal(cmd.Example))
	}
	writeSeeAlso(&b, cmd)
	return b.String()
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	list := children(cmd)
	if len(list) == 0 {
		return
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(c.Name()), escape(c.Short))
	}
}

func writeOptions(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n\\fB")
		if f.Shorthand != "" {
			b.WriteString(escape("-"+f.Shorthand) + "\\fR, \\fB")
		}
		b.WriteString(escape("--"+f.Name) + "\\fR")
		if value != "" {
			b.WriteString(" \\fI" + escape(value) + "\\fR")
		}
		fmt.Fprintf(b, "\n%s\n", escape(usage))
	})
}

func writeSeeAlso(b *strings.Builder, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, pageName(cmd.Parent()))
	}
	for _, c := range children(cmd) {
		names = append(names, pageName(c))
	}
	if len(names) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range names {
		separator := ",\n"
		if i == len(names)-1 {
			separator = "\n"
		}
		fmt.Fprintf(b, ".BR %s (1)%s", escape(name), separator)
	}
}

// paragraphs returns roff for text with filled lines. An empty line separates paragraphs.
func paragraphs(text string) string {
	var b strings.Builder
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(escape(strings.TrimSpace(p)) + "\n")
	}
	return b.String()
}

// literal returns roff for text and keeps its line breaks.
func literal(text string) string {
	return ".nf\n" + escape(strings.Trim(text, "\n")) + "\n.fi\n"
}

// escape escapes text for roff. Code quotes become bold text.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		parts := strings.Split(line, "`")
		if len(parts)%2 == 1 {
			for j := 1; j < len(parts); j += 2 {
				parts[j] = `\fB` + parts[j] + `\fR`
			}
			line = strings.Join(parts, "")
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
