package manpages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{
		Use: "tool", Short: "Does things", Long: "Does things.\n\n.It starts with a dot, has a \\ and a `quoted word`.", Run: run,
	}
	root.PersistentFlags().String("base-url", "", "`ADDRESS` to call; default http://<listen>")
	child := &cobra.Command{Use: "add NAME", Short: "Add one", Example: "  tool add 'a'", Run: run}
	hidden := &cobra.Command{Use: "internal", Short: "Not for people", Hidden: true, Run: run}
	topic := &cobra.Command{Use: "settings", Short: "All settings", Long: "  --listen   where to listen"}
	root.AddCommand(child, hidden, topic)
	return root
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(program(), "1.2.3", "2026-11-26", dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimPrefix(f, dir+string(filepath.Separator)))
	}
	got := filepath.ToSlash(strings.Join(names, " "))
	want := "completions/_tool completions/tool.bash completions/tool.fish completions/tool.ps1 man/tool-add.1 man/tool.1"
	if got != want {
		t.Errorf("got files %s, want %s", got, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "man", "tool.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`.TH TOOL 1 2026-11-26 "tool 1.2.3"`, `\&.It starts with a dot, has a \e and a \fBquoted word\fR.`, ".B add\nAdd one\n",
		`\fB\-\-base\-url\fR \fIADDRESS\fR` + "\nADDRESS to call; default http://<listen>\n", ".SH SETTINGS\n.nf\n", ".BR tool\\-add (1)\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "internal") {
		t.Error("the page names a hidden command")
	}
}

func TestWrite_RefusesAnUnreadableDate(t *testing.T) {
	if err := Write(program(), "1.2.3", "November", t.TempDir()); err == nil {
		t.Error("want an error")
	}
}
