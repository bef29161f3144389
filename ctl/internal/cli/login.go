package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/problem"
)

func (a *app) login() *cobra.Command {
	var replace bool
	cmd := command.New("login", "Link this machine to an account",
		"Shows a code and opens a page on which you sign in and approve it.\n"+
			"Waits for your approval until the code expires, usually ten minutes.\n"+
			"Without a terminal it prints one JSON object per line: code, opened, waiting ..., then linked or error.\n"+
			"A live link to another account or backend is kept unless you pass --replace or answer y.",
		func(ctx context.Context) error { return a.runLogin(ctx, replace) })
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a live link to another account or backend")
	return cmd
}

func (a *app) runLogin(ctx context.Context, replace bool) error {
	return a.WithClient(ctx, func(c *client.Client) (err error) {
		if a.PrintsJSON || !a.TTY {
			return a.loginLines(ctx, c, replace)
		}
		if !replace {
			if replace, err = a.askToReplace(ctx, c); err != nil {
				return err
			}
		}
		return a.loginShown(ctx, c, replace)
	})
}

// askToReplace asks for confirmation before a link to another account or backend is replaced. It does not ask if
// there is no link. If the user declines, the same account may still be linked again.
func (a *app) askToReplace(ctx context.Context, c *client.Client) (bool, error) {
	who, err := c.Whoami(ctx, false)
	if err != nil {
		return false, err
	}
	if s := who.State; s != "linked" && s != "other_backend" {
		return false, nil
	}
	return a.Confirm(ctx, a.In, term.ReplaceQuestion(text(who.AccountID), text(who.BackendURL)))
}

// loginShown runs a login interactively on a terminal.
func (a *app) loginShown(ctx context.Context, c *client.Client, replace bool) error {
	stop := func() {}
	defer func() { stop() }()
	var expiresIn time.Duration
	var page string
	linked, err := c.Login(ctx, replace, client.LoginEvents{
		Code: func(code *client.Code) {
			replaces := ""
			if replace {
				replaces = code.Replaces
			}
			a.Code(code.UserCode, code.VerificationURL, code.ExpiresInSeconds, replaces, code.SignInWord)
			page, expiresIn = code.VerificationURL, time.Duration(code.ExpiresInSeconds)*time.Second
		},
		Opened: func(o *client.Opened) {
			a.Browser(page, o.Opened, o.Reason)
			stop = a.Countdown(expiresIn)
		},
	})
	stop()
	if err != nil {
		return loginError(err)
	}
	a.Linked(term.Link{
		Account: linked.AccountID, Email: linked.Email, Tier: linked.Tier, File: linked.AuthFile,
		WriteError: linked.WriteError, RevokeAt: linked.RevokeURL,
	})
	return writtenOrNot(linked)
}

// writtenOrNot returns the exit code for a successful login, which depends on whether auth.json was written.
func writtenOrNot(linked *client.Linked) error {
	if linked.WriteError != "" {
		return command.ExitUnknown
	}
	return nil
}

// The events of a login, printed as JSON lines.
type (
	codeLine struct {
		Event               string `json:"event"`
		UserCode            string `json:"userCode"`
		VerificationURL     string `json:"verificationUrl"`
		ExpiresInSeconds    int    `json:"expiresInSeconds"`
		PollIntervalSeconds int    `json:"pollIntervalSeconds"`
		Replaces            string `json:"replaces,omitempty"`
		Instruction         string `json:"instruction"`
		Notice              string `json:"notice"`
		SignInWord          string `json:"signInWord,omitempty"`
	}
	openedLine struct {
		Event  string `json:"event"`
		Opened bool   `json:"opened"`
		Reason string `json:"reason,omitempty"`
		// PortForward is the command to run on the user's own computer if the login runs on a remote machine.
		PortForward string `json:"portForward,omitempty"`
	}
	waitingLine struct {
		Event            string `json:"event"`
		PollCount        int    `json:"pollCount"`
		RemainingSeconds int    `json:"remainingSeconds"`
		Note             string `json:"note,omitempty"`
	}
	linkedLine struct {
		Event     string  `json:"event"`
		Linked    bool    `json:"linked"`
		AccountID string  `json:"accountId"`
		Tier      string  `json:"tier"`
		LinkedAt  string  `json:"linkedAt"`
		ExpiresAt *string `json:"expiresAt"`
		AuthFile  string  `json:"authFile"`
		PollCount int     `json:"pollCount"`
		Written   bool    `json:"written"`
		Code      string  `json:"code,omitempty"`
		Message   string  `json:"message,omitempty"`
		FixHint   string  `json:"fixHint,omitempty"`
		RevokeURL string  `json:"revokeUrl,omitempty"`
	}
	errorLine struct {
		Event string         `json:"event"`
		Error *problem.Error `json:"error"`
	}
)

// loginLines runs a login for another program and prints one JSON object per line.
func (a *app) loginLines(ctx context.Context, c *client.Client, replace bool) error {
	var page string
	linked, err := c.Login(ctx, replace, client.LoginEvents{
		Code: func(code *client.Code) {
			page = code.VerificationURL
			_ = a.Line(codeLine{"code", code.UserCode, code.VerificationURL, code.ExpiresInSeconds,
				code.PollIntervalSeconds, code.Replaces, term.Instruction, term.Notice(code.ExpiresInSeconds),
				code.SignInWord})
		},
		Opened: func(o *client.Opened) {
			_ = a.Line(openedLine{"opened", o.Opened, o.Reason, term.PortForward(page, o.Opened, o.Reason)})
		},
		Waiting: func(w *client.Waiting) {
			_ = a.Line(waitingLine{"waiting", w.PollCount, w.RemainingSeconds, w.Note})
		},
	})
	if err != nil && ctx.Err() == nil {
		p := command.ProblemOf(loginError(err))
		_ = a.Line(errorLine{"error", p})
		return exitOf(p.Code)
	}
	if err != nil {
		return err
	}
	line := linkedLine{
		Event: "linked", Linked: true, AccountID: linked.AccountID, Tier: linked.Tier,
		LinkedAt:  linked.LinkedAt,
		ExpiresAt: linked.ExpiresAt, AuthFile: linked.AuthFile, PollCount: linked.PollCount,
		Written: linked.WriteError == "", RevokeURL: linked.RevokeURL,
	}
	if !line.Written {
		line.Code, line.Message, line.FixHint = problem.CodeAuthFileWriteFailed, linked.WriteError, term.WriteHint
	}
	if err := a.Line(line); err != nil {
		return err
	}
	return writtenOrNot(linked)
}

// loginError rewords the error of a failed login for the user who started it. It returns other errors unchanged.
func loginError(err error) error {
	if p := problem.From(err); p != nil {
		return term.LoginProblem(p)
	}
	return err
}
