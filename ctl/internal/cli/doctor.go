package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/reach"
)

type check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok | warn | fail
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check everything and say what to do about what fails", Args: cobra.NoArgs,
		Long: "Exit code: 0 nothing fails, 1 something does.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context()) },
	}
}

func (a *app) runDoctor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	checks := append(programChecks(), a.daemonChecks(ctx)...)
	failed := false
	rows := [][]string{}
	for _, c := range checks {
		failed = failed || c.State == "fail"
		rows = append(rows, []string{c.State, c.Name, c.Detail})
		if c.State != "ok" && c.Fix != "" {
			rows = append(rows, []string{"", "", "next: " + c.Fix})
		}
	}
	if a.json {
		if err := a.JSON(map[string]any{"ok": !failed, "checks": checks}); err != nil {
			return err
		}
	} else {
		a.Table(rows)
	}
	if failed {
		return exit(exitNo)
	}
	return nil
}

// programChecks look for our programs beside this one.
func programChecks() []check {
	var out []check
	for _, name := range []string{"serviced", "service-mcp"} {
		path, err := reach.Beside(name)
		c := check{Name: "program " + name, State: "ok", Detail: path}
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			c.State, c.Detail, c.Fix = "fail", err.Error(), "install "+name+" into the folder of this program"
		}
		out = append(out, c)
	}
	return out
}

func (a *app) daemonChecks(ctx context.Context) []check {
	c, err := a.open(ctx)
	if err != nil {
		p := problemOf(err)
		return []check{{Name: "daemon", State: "fail", Detail: p.Message, Fix: p.FixHint}}
	}
	defer c.Close()
	out := []check{{Name: "daemon", State: "ok", Detail: "answers on " + c.Daemon.Paths.Control}}
	list, err := c.Doctor(ctx)
	if err != nil {
		p := problemOf(err)
		return append(out, check{Name: "daemon's checks", State: "fail", Detail: p.Message, Fix: p.FixHint})
	}
	return append(out, checksOf(list)...)
}

func checksOf(list []*client.Check) []check {
	var out []check
	for _, c := range list {
		out = append(out, check{Name: c.GetName(), State: c.GetState(), Detail: c.GetDetail(), Fix: c.GetFix()})
	}
	return out
}
