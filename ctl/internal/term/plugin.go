package term

// Adapter is an adapter that the user adds or removes.
type Adapter struct{ Name, Title, Path, Owner, SHA256 string }

// ShowAdapter prints the adapter that a confirmation is about.
func (t *Terminal) ShowAdapter(a Adapter) {
	t.Remark("  path     %s\n  owner    %s\n  SHA-256  %s", a.Path, a.Owner, a.SHA256)
}

// AddedAdapter describes, in a list, an adapter that the user added.
func (t *Terminal) AddedAdapter(a Adapter, added string) {
	t.Say("%s was added %s: %s, of %s, SHA-256 %s", a.Name, added, a.Path, a.Owner, a.SHA256)
}

// Questions about an adapter.
const (
	AddAdapterQuestion    = "It will run with your rights and can read your files. Add it?"
	RemoveAdapterQuestion = "Sessions that use it lose their glasses. Remove it?"
)

// AdapterAdded reports a new adapter with the next step.
func (t *Terminal) AdapterAdded(a Adapter) {
	t.Say("Added %s: %s.", a.Name, Dash(a.Title))
	t.Next("`servicectl tool call startLocalSimulation --arg transport=%s`", a.Name)
}

// AdapterRemoved reports that an adapter was removed.
func (t *Terminal) AdapterRemoved(a Adapter) {
	t.Say("Removed %s. Its file was not deleted: %s", a.Name, a.Path)
}
