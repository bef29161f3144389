package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/cli/session"
	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/clientio"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/problem"
)

// pages maps the arguments of open to paths below the backend's address. The page of a session has its own address.
var pages = map[string]string{"dashboard": "/account", "docs": "/docs", "session": ""}

// pageNames lists the keys of pages.
var pageNames = []string{"dashboard", "docs", "session"}

func (a *app) openPage() *cobra.Command {
	return &cobra.Command{
		Use: "open [dashboard|docs|session [ID]]", Short: "Open a page in your browser",
		Long: "Opens the dashboard, the documentation, or the page of a browser session (by default the most recent).\n" +
			"If it cannot open a browser, it prints the address and the reason.\n" +
			"Exit code: 0 opened, 1 not opened, 2 could not be run.",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if command.FirstArg(args) == "session" {
				return a.Complete(session.IDs)(cmd, args[1:], start)
			}
			return fixed(pageNames...)(cmd, args, start)
		},
		Args: func(_ *cobra.Command, args []string) error {
			page := "dashboard"
			if len(args) > 0 {
				page = args[0]
			}
			_, known := pages[page]
			switch {
			case !known:
				next := "open dashboard, docs or session"
				if similar := command.SimilarTo(page, pageNames); len(similar) > 0 {
					next = command.DidYouMean("servicectl open ", similar)
				}
				return &command.UsageError{Message: fmt.Sprintf("there is no page %q", page), Next: next}
			case len(args) > 2 || len(args) == 2 && page != "session":
				return fmt.Errorf("unexpected argument %q", args[len(args)-1])
			}
			return nil
		},
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			var url string
			var err error
			if command.FirstArg(args) == "session" {
				url, err = pageOfSession(ctx, c, command.FirstArg(args[1:]))
			} else {
				url, err = pageOfBackend(ctx, c, append(args, "dashboard")[0])
			}
			if err != nil {
				return err
			}
			return a.show(ctx, url)
		}),
	}
}

// show opens a page and prints its address. It returns command.ExitNo if no browser was opened.
func (a *app) show(ctx context.Context, url string) error {
	r, err := clientio.Open(ctx, url)
	if err != nil {
		return err
	}
	err = a.Print(struct {
		URL    string `json:"url"`
		Opened bool   `json:"opened"`
		Reason string `json:"reason,omitempty"`
	}{url, r.Opened, r.Reason}, func() {
		a.Say("%s", url)
		a.Browser(url, r.Opened, r.Reason)
	})
	if err == nil && !r.Opened {
		err = command.ExitNo
	}
	return err
}

// pageOfBackend returns the address of a page of the caller's backend. The embedded backend serves pages only while it
// runs.
func pageOfBackend(ctx context.Context, c *client.Client, page string) (string, error) {
	if _, err := c.Whoami(ctx, true); err != nil { // this call starts the embedded backend if this machine is linked to it
		return "", err
	}
	s, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	dashboard, ok := strings.CutSuffix(s.Backend.DashboardURL, pages["dashboard"])
	if !ok {
		return "", &problem.Error{Code: problem.CodePageNotFound,
			Message: "the embedded backend, which serves this page, is not running",
			FixHint: "Run `servicectl login`, which starts it; the documentation is also in `servicectl tool call searchDocs`."}
	}
	return dashboard + pages[page], nil
}

// pageOfSession returns the address of a session's page. Without an ID it uses the latest session that has one.
func pageOfSession(ctx context.Context, c *client.Client, id string) (string, error) {
	type page struct{ SessionURL string }
	var answer struct {
		Session  page
		Sessions []page
	}
	args := map[string]any{}
	if id != "" {
		args["sessionId"] = id
	}
	if _, err := command.CallTool(ctx, c, "getSessionStatus", args, &answer); err != nil {
		return "", err
	}
	for _, s := range append(answer.Sessions, answer.Session) {
		if s.SessionURL != "" {
			return s.SessionURL, nil
		}
	}
	return "", &problem.Error{Code: problem.CodePageNotFound, Message: "no browser session is open",
		FixHint: "Ask your agent for one (createSimulatorSession); a local session has no page: use " +
			"`servicectl session show`."}
}
