package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) login() *cobra.Command {
	var replace bool
	cmd := command.New("login", "Link this machine to an account",
		"Shows a code and opens a page on which you sign in and approve it.\n"+
			"Waits for that until the code expires, usually ten minutes.\n"+
			"Without a terminal it prints one JSON object per line: code, opened, waiting ..., then linked or error.\n"+
			"A live link to another account or backend is kept unless you pass --replace or answer y.",
		func(ctx context.Context) error { return a.runLogin(ctx, replace) })
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a live link to another account or backend")
	return cmd
}

func (a *app) runLogin(ctx context.Context, replace bool) error {
	return a.WithClient(ctx, func(c *client.Client) (err error) {
		host, _ := os.Hostname()
		if a.PrintsJSON || !a.TTY {
			return a.loginLines(ctx, c, host, replace)
		}
		if !replace {
			if replace, err = a.askToReplace(ctx, c); err != nil {
				return err
			}
		}
		return a.loginShown(ctx, c, host, replace)
	})
}

// askToReplace asks for confirmation before a link to another account or backend is replaced. Without a link it does
// not ask. If the user declines, the same account may still be linked again.
func (a *app) askToReplace(ctx context.Context, c *client.Client) (bool, error) {
	who, err := c.Whoami(ctx, false)
	if err != nil {
		return false, err
	}
	link := who.GetLink()
	if s := link.GetState(); s != "linked" && s != "other_backend" {
		return false, nil
	}
	return a.Confirm(ctx, a.In, term.ReplaceQuestion(link.GetAccountId(), link.GetBackendUrl()))
}

// loginShown runs a login interactively on a terminal.
func (a *app) loginShown(ctx context.Context, c *client.Client, host string, replace bool) error {
	stop := func() {}
	defer func() { stop() }()
	var expiresIn time.Duration
	var page string
	linked, err := c.Login(ctx, host, replace, client.LoginEvents{
		Code: func(code *client.Code) {
			replaces := ""
			if replace {
				replaces = code.GetReplaces()
			}
			a.Code(code.GetUserCode(), code.GetVerificationUrl(), code.GetExpiresInSeconds(), replaces, code.GetSignInWord())
			page, expiresIn = code.GetVerificationUrl(), time.Duration(code.GetExpiresInSeconds())*time.Second
		},
		Opened: func(o *client.Opened) {
			a.Browser(page, o.GetOpened(), o.GetReason())
			stop = a.Countdown(expiresIn)
		},
	})
	stop()
	if err != nil {
		return loginError(err)
	}
	a.Linked(term.Link{
		Account: linked.GetAccountId(), Email: linked.GetEmail(), Tier: linked.GetTier(), File: linked.GetAuthFile(),
		WriteError: linked.GetWriteError(), RevokeAt: linked.GetRevokeUrl(),
	})
	return writtenOrNot(linked)
}

// codeWriteFailed is the error code for a valid link whose auth.json could not be written.
const codeWriteFailed = "auth_file_write_failed"

// writtenOrNot returns the exit code for a successful login, which depends on whether auth.json was written.
func writtenOrNot(linked *client.Linked) error {
	if linked.GetWriteError() != "" {
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
		ExpiresInSeconds    uint32 `json:"expiresInSeconds"`
		PollIntervalSeconds uint32 `json:"pollIntervalSeconds"`
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
		PollCount        uint32 `json:"pollCount"`
		RemainingSeconds uint32 `json:"remainingSeconds"`
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
		PollCount uint32  `json:"pollCount"`
		Written   bool    `json:"written"`
		Code      string  `json:"code,omitempty"`
		Message   string  `json:"message,omitempty"`
		FixHint   string  `json:"fixHint,omitempty"`
		RevokeURL string  `json:"revokeUrl,omitempty"`
	}
	errorLine struct {
		Event string       `json:"event"`
		Error term.Problem `json:"error"`
	}
)

// loginLines runs a login for another program and prints one JSON object per line.
func (a *app) loginLines(ctx context.Context, c *client.Client, host string, replace bool) error {
	var page string
	linked, err := c.Login(ctx, host, replace, client.LoginEvents{
		Code: func(code *client.Code) {
			page = code.GetVerificationUrl()
			_ = a.Line(codeLine{"code", code.GetUserCode(), code.GetVerificationUrl(), code.GetExpiresInSeconds(),
				code.GetPollIntervalSeconds(), code.GetReplaces(), term.Instruction, term.Notice(code.GetExpiresInSeconds()),
				code.GetSignInWord()})
		},
		Opened: func(o *client.Opened) {
			_ = a.Line(openedLine{"opened", o.GetOpened(), o.GetReason(), term.PortForward(page, o.GetOpened(), o.GetReason())})
		},
		Waiting: func(w *client.Waiting) {
			_ = a.Line(waitingLine{"waiting", w.GetPollCount(), w.GetRemainingSeconds(), w.GetNote()})
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
		Event: "linked", Linked: true, AccountID: linked.GetAccountId(), Tier: linked.GetTier(),
		LinkedAt:  linked.GetLinkedAt(),
		ExpiresAt: linked.ExpiresAt, AuthFile: linked.GetAuthFile(), PollCount: linked.GetPollCount(),
		Written: linked.GetWriteError() == "", RevokeURL: linked.GetRevokeUrl(),
	}
	if !line.Written {
		line.Code, line.Message, line.FixHint = codeWriteFailed, linked.GetWriteError(), term.WriteHint
	}
	if err := a.Line(line); err != nil {
		return err
	}
	return writtenOrNot(linked)
}

// loginError rewords the error of a failed login for the user who started it. It returns other errors unchanged.
func loginError(err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	p := client.Error(term.LoginProblem(term.Problem(*e)))
	return &p
}
