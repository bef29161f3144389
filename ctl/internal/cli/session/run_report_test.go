package session

import "testing"

// The command that repeats a run contains the app id given for the original run.
func TestLine_KeepsTheProject(t *testing.T) {
	b := &batch{command: []string{"node", "my app.js"}, options: runOptions{project: "com.example.app"}}
	if got, want := b.line([]string{"a.json"}, []string{"even_g1"}), "servicectl session run a.json --models even_g1 "+
		"--project com.example.app -- node 'my app.js'"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestShellWord_Quotes(t *testing.T) {
	for word, want := range map[string]string{"a/b.json": "a/b.json", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'", "--flag=1": "--flag=1"} {
		if got := shellWord(word); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", word, got, want)
		}
	}
}
