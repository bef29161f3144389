package term

// Questions about the test picture on real glasses.
const (
	PanelUprightQuestion = "Is the arrow upright, and is the LEFT square filled with light?"
	PanelBorderQuestion  = "Do you see the border on all four sides?"
	PanelAgainQuestion   = "Is the arrow upright, the LEFT square filled, and the border on all four sides?"
)

// PanelPicture announces the test picture.
func (t *Terminal) PanelPicture() {
	t.Say("The glasses show a test picture: an arrow, a square on each side of it, and a border around everything.")
}

// PanelRefused reports that the glasses did not show the test picture.
func (t *Terminal) PanelRefused(why string) {
	t.Remark("The glasses did not show the test picture: %s", why)
}

// PanelAgain announces the test picture with other settings.
func (t *Terminal) PanelAgain() {
	t.Say("The glasses show the picture again, in another way.")
}

// PanelRight reports that a panel shows pictures correctly.
func (t *Terminal) PanelRight(name string) {
	t.Say("%s shows pictures correctly. Your answers are saved.", name)
}

// PanelWrong reports that no setting makes the picture correct.
func (t *Terminal) PanelWrong(name string) {
	t.Remark("%s does not show pictures correctly, and no setting of the service can change that.", name)
	t.Next("update the glasses in the vendor's app, then run `servicectl glasses check`")
}

// PanelUnchecked reports that the questions were not answered.
func (t *Terminal) PanelUnchecked() {
	t.Remark("\nThe panel is not checked. `servicectl glasses check` asks again.")
}

// GlassesForgotten reports that a pair is no longer remembered.
func (t *Terminal) GlassesForgotten(name string) {
	t.Say("Forgot %s. If it has a session, the session keeps it until you run `servicectl glasses disconnect`.", name)
}
