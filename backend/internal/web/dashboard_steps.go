package web

import "strings"

// firstSteps is the data of the template "first-steps". It is computed from the stored data, so completed steps are
// ticked automatically.
type firstSteps struct {
	List     []step
	Done     int  // number of steps that are done
	Embedded bool // whether the backend runs on the user's own computer
}

// step is a line of a checklist. If it has a Link, the user does the step there; steps with Commands or a Prompt are
// done elsewhere.
type step struct {
	Title, Text string
	Commands    string // shell commands
	Prompt      string // prompt for the coding agent
	Link        string
	Done        bool
}

// firstSteps lists the steps from a new account to a running app.
func (w *Web) firstSteps(c *call, isLinked, hasProject bool) (firstSteps, error) {
	m, err := w.Dashboard.Sessions.Milestones(c.Context(), c.account.ID)
	if err != nil {
		return firstSteps{}, err
	}
	steps := firstSteps{Embedded: w.Embedded, List: []step{
		{Title: "Link your coding agent", Text: w.linkAdvice(), Commands: w.linkCommands(), Done: isLinked},
		{
			Title: "Create your first project", Done: hasProject,
			Text: "Ask your agent, in an empty folder. It makes up an app id, and the project appears here:",
			// The prompt names the account's simulator, because agents also have simulated glasses without one.
			Prompt: "Build an app for my glasses, open it in the browser simulator and prove that it works.",
		},
		{Title: "Open a simulator session", Done: m.Opened,
			Text: "Your agent opens it for the app. It stays open for a day after its last use, under Sessions."},
		{Title: "See your app on the glasses", Done: m.AppSeen,
			Text: "Your agent starts the app, and the app attaches to the session by itself."},
	}}
	for _, s := range steps.List {
		if s.Done {
			steps.Done++
		}
	}
	return steps, nil
}

// Open reports whether any step is left.
func (f firstSteps) Open() bool { return f.Done < len(f.List) }

// linkAdvice explains on which computer to run the commands of linkCommands.
func (w *Web) linkAdvice() string {
	const compare = "The last command shows a code and opens a page here: compare the codes, then approve."
	switch {
	case !w.Embedded:
		return "On the computer where you code. " + compare
	case w.StateDir != "":
		return "On this computer, in the shell from which you start your agent: without the first line the tools use " +
			"another backend. " + compare
	}
	return "On this computer. The tools find this backend by themselves. " + compare
}

func (w *Web) linkCommands() string {
	commands := "servicectl agent add --all\nservicectl login"
	if export := w.exportCommand(); export != "" {
		commands = export + "\n" + commands
	}
	return commands
}

// exportCommand returns the command that points the tools to this backend, or "" if they find it by themselves. The
// tools find an embedded backend through its state directory. Its address must not be set, because the tools would
// treat that address as another backend, to which they are not linked.
func (w *Web) exportCommand() string {
	switch {
	case w.Embedded && w.StateDir != "":
		return "export SERVICE_CONFIG_DIR='" + strings.ReplaceAll(w.StateDir, "'", `'\''`) + "'"
	case w.Embedded || w.SiteURL == "":
		return ""
	}
	return "export SERVICE_BACKEND_URL=" + w.SiteURL
}
