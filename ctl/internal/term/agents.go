package term

// AgentChanged prints the result of editing one agent's file. problem is empty on success.
func (t *Terminal) AgentChanged(word, name, file, problem, snippet, diff string, changed, dry bool) {
	switch {
	case problem != "":
		t.Remark("%s: %s", name, problem)
		if word == "add" {
			t.Next("add this to the file by hand")
			t.RemarkRow("%s", indent(snippet))
		} else {
			t.Next("remove the entry \"service\" by hand")
		}
	case !changed:
		t.Say("%s: nothing to do (%s)", name, file)
	case dry:
		t.Say("%s: would change %s", name, file)
		t.Row("%s", indent(diff))
	case word == "add":
		t.Say("%s: registered in %s; restart the agent if it is running", name, file)
	default:
		t.Say("%s: removed from %s", name, file)
	}
}

// indent indents text and removes a trailing empty line.
func indent(text string) safeText { return indentBy(text, 4) }
