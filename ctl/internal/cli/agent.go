package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/agents"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/rendezvous"
)

func (a *app) agent() *cobra.Command {
	remove := func(g agents.Agent, _ agents.Program, dry bool) (agents.Change, error) { return g.Remove(dry) }
	return command.Group("agent", "Register service-mcp with your coding agents",
		"Each agent has its own configuration file. Only the entry \"service\" in it is changed. A file that cannot be\n"+
			"changed safely stays as it is, and the text to paste is printed.",
		command.New("list", "List the coding agents with their state", "",
			func(context.Context) error { return a.listAgents() }),
		a.changeAgents("add", "Register service-mcp", agents.Agent.Add),
		a.changeAgents("remove", "Remove service-mcp from your coding agents", remove))
}

// agentChange edits one agent's file. If dry is set, it writes nothing.
type agentChange = func(g agents.Agent, p agents.Program, dry bool) (agents.Change, error)

// changeAgents returns the command `agent add` or `agent remove`.
func (a *app) changeAgents(word, short string, change agentChange) *cobra.Command {
	var all, dry bool
	var toolset string
	cmd := &cobra.Command{
		Use: word + " NAME... | --all", Short: short,
		ValidArgsFunction: agentNames,
		Long: short + ".\nNames are those of `servicectl agent list`; --all means every agent found on this " +
			"machine,\nand for remove every agent with an entry.\nExit code: 0 done, 1 no agent was found, 2 a file was not changed.",
		RunE: func(_ *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return errors.New("name at least one agent, or use --all")
			}
			if !rendezvous.Toolset(toolset) {
				return fmt.Errorf("unknown toolset %q: use --tools %s, or omit --tools to list every tool", toolset,
					rendezvous.ToolsetLocal)
			}
			return a.runChange(names, word, toolset, dry, change)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every agent found on this machine")
	if word == "add" {
		cmd.Flags().StringVar(&toolset, "tools", "",
			"list only this toolset: local, without the account's tools, which still work when called")
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the change and write nothing")
	return cmd
}

// agentRow is one agent in the output of --json.
type agentRow struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Found   bool   `json:"found"`
	State   string `json:"state"`
	File    string `json:"file"`
	Program string `json:"program,omitempty"` // the registered program, with other_path
	Toolset string `json:"toolset,omitempty"` // the listed tools; empty means all
	Error   string `json:"error,omitempty"`
	Fix     string `json:"fix,omitempty"` // the next step, with other_path
	Changed *bool  `json:"changed,omitempty"`
	Diff    string `json:"diff,omitempty"`    // set with --dry-run
	Snippet string `json:"snippet,omitempty"` // text to paste, with an error
	missing error  // why the registered program's file cannot be found, or nil
}

// known returns the supported agents and the path of the program to register.
func known() ([]agents.Agent, string, error) {
	place, err := agents.Here()
	if err != nil {
		return nil, "", err
	}
	shim, err := programpath.Stable("service-mcp")
	return agents.All(place), shim, err
}

func rowOf(g agents.Agent, shim agents.Program) agentRow {
	state, now, err := g.State(shim.Command)
	row := agentRow{ID: g.ID, Name: g.Name, Found: state != agents.StateNotFound, State: state, File: g.File}
	switch state {
	case agents.StateOther:
		row.Program = now.String()
		row.Fix = "Run `servicectl agent add " + g.ID + "`: it registers " + shim.Command + "."
		_, row.missing = os.Stat(now.Command)
	case agents.StateRegistered:
		row.Toolset, _ = now.Toolset()
	}
	if err != nil {
		row.Error, row.Snippet = err.Error(), g.Snippet(shim)
	}
	return row
}

func (a *app) listAgents() error {
	all, shim, err := known()
	if err != nil {
		return err
	}
	rows := make([]agentRow, 0, len(all))
	for _, g := range all {
		rows = append(rows, rowOf(g, agents.Shim(shim, rendezvous.ToolsetAll)))
	}
	return a.Print(map[string]any{"program": shim, "agents": rows}, func() {
		table := [][]string{{"AGENT", "STATE", "FILE"}}
		for _, r := range rows {
			table = append(table, []string{r.ID, agentState(r), belowHome(r.File)})
		}
		a.Table(table)
		for _, r := range rows {
			if r.Fix != "" {
				a.Remark("%s: %s", r.Name, r.Fix)
			}
		}
	})
}

// belowHome returns a path in the short form that every shell understands, if it is below the home directory.
func belowHome(path string) string {
	home, err := rendezvous.Home()
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && err == nil {
		return "~/" + rest
	}
	return path
}

// agentState describes a state in words.
func agentState(r agentRow) string {
	switch r.State {
	case agents.StateNotFound:
		return "not found"
	case agents.StateNotRegistered:
		return "not registered"
	case agents.StateOther:
		if r.Program == "" {
			return "registered in another way"
		}
		if errors.Is(r.missing, fs.ErrNotExist) && filepath.IsAbs(r.Program) {
			return "registered with " + r.Program + ", which does not exist"
		}
		return "registered with " + r.Program
	case agents.StateUnreadable:
		return "cannot tell: " + r.Error
	case agents.StateRegistered:
		if r.Toolset != rendezvous.ToolsetAll {
			return "registered with --tools " + r.Toolset
		}
	}
	return r.State
}

func (a *app) runChange(names []string, word, toolset string, dry bool, change agentChange) error {
	all, shim, err := known()
	if err != nil {
		return err
	}
	chosen, err := choose(all, names, word == "remove")
	if err != nil {
		return err
	}
	program := agents.Shim(shim, toolset)
	rows, refused := make([]agentRow, 0, len(chosen)), false
	for _, g := range chosen {
		done, err := change(g, program, dry)
		row := rowOf(g, program)
		changed := err == nil && done.Changed()
		row.Changed = &changed
		if err != nil {
			refused = true
			row.Error, row.Snippet = err.Error(), g.Snippet(program)
		} else if dry {
			row.Diff = done.Diff()
		}
		rows = append(rows, row)
		if !a.PrintsJSON {
			a.AgentChanged(word, row.Name, row.File, row.Error, row.Snippet, row.Diff, changed, dry)
		}
	}
	if len(chosen) == 0 && !a.PrintsJSON {
		a.Say("No coding agent is registered: there is nothing to do.")
	}
	if a.PrintsJSON {
		if err := a.JSON(map[string]any{"program": shim, "dryRun": dry, "agents": rows}); err != nil {
			return err
		}
	}
	if refused {
		return command.ExitUnknown
	}
	return nil
}

// unknownAgent returns the error for a name that matches no supported agent.
func unknownAgent(all []agents.Agent, name string) error {
	ids := make([]string, 0, len(all))
	for _, g := range all {
		ids = append(ids, g.ID)
	}
	next := "`servicectl agent list` shows the names"
	if similar := command.SimilarTo(name, ids); len(similar) > 0 {
		next = command.DidYouMean("", similar)
	}
	return &command.UsageError{Message: fmt.Sprintf("unknown agent %q", name), Next: next}
}

// choose returns the agents called names, or all agents found on this machine if names is empty. If remove is set, it
// also returns agents that have an entry but no program, and it is not an error if no agent is found.
func choose(all []agents.Agent, names []string, remove bool) ([]agents.Agent, error) {
	found := func(g agents.Agent) bool { return g.Found() || remove && g.Registered() }
	var chosen []agents.Agent
	for _, name := range names {
		i := slices.IndexFunc(all, func(g agents.Agent) bool { return g.ID == name })
		if i < 0 {
			return nil, unknownAgent(all, name)
		}
		if !found(all[i]) {
			return nil, &problem.Error{Code: problem.CodeAgentNotFound, Message: all[i].Name + " was not found on this machine",
				FixHint: "Install it, start it once, and try again."}
		}
		chosen = append(chosen, all[i])
	}
	if len(names) > 0 {
		return chosen, nil
	}
	for _, g := range all {
		if found(g) {
			chosen = append(chosen, g)
		}
	}
	if len(chosen) == 0 && !remove {
		return nil, &problem.Error{Code: problem.CodeAgentNotFound, Message: "no coding agent was found on this machine",
			FixHint: "Install one, start it once, and try again."}
	}
	return chosen, nil
}
