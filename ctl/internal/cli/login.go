package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) login() *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Link this machine to an account", Args: cobra.NoArgs,
		Long: "Shows a code and opens a page on which you sign in and approve it. Waits until you did, for at most ten minutes.\n" +
			"Without a terminal it prints one JSON object a line: code, opened, waiting ..., then linked or error.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runLogin(cmd.Context()) },
	}
}

func (a *app) runLogin(ctx context.Context) error {
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	host, _ := os.Hostname()
	if a.json || !a.TTY {
		return a.loginLines(ctx, c, host)
	}
	return a.loginShown(ctx, c, host)
}

// loginShown is login before a person.
func (a *app) loginShown(ctx context.Context, c *client.Client, host string) error {
	stop := func() {}
	defer func() { stop() }()
	linked, err := c.Login(ctx, host, client.LoginEvents{
		Code: func(code *client.Code) {
			a.Code(code.GetUserCode(), code.GetVerificationUrl(), code.GetExpiresInSeconds(), code.GetReplaces(), code.GetSignInWord())
			stop = a.Countdown(time.Duration(code.GetExpiresInSeconds()) * time.Second)
		},
		Opened: func(o *client.Opened) {
			if !a.Moves {
				a.Browser(o.GetOpened(), o.GetReason())
			} else if !o.GetOpened() {
				a.Remark("")
				a.Browser(false, o.GetReason())
			}
		},
	})
	stop()
	if err != nil {
		return spent(err)
	}
	a.Linked(linked.GetAccountId(), linked.GetTier(), linked.GetAuthFile())
	return nil
}

// The events of a login as JSON lines.
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
	}
	errorLine struct {
		Event string       `json:"event"`
		Error term.Problem `json:"error"`
	}
)

// loginLines is login before a program.
func (a *app) loginLines(ctx context.Context, c *client.Client, host string) error {
	linked, err := c.Login(ctx, host, client.LoginEvents{
		Code: func(code *client.Code) {
			_ = a.Line(codeLine{"code", code.GetUserCode(), code.GetVerificationUrl(), code.GetExpiresInSeconds(),
				code.GetPollIntervalSeconds(), code.GetReplaces(), term.Instruction, term.Notice(code.GetExpiresInSeconds()), code.GetSignInWord()})
		},
		Opened: func(o *client.Opened) { _ = a.Line(openedLine{"opened", o.GetOpened(), o.GetReason()}) },
		Waiting: func(w *client.Waiting) {
			_ = a.Line(waitingLine{"waiting", w.GetPollCount(), w.GetRemainingSeconds(), w.GetNote()})
		},
	})
	if err != nil && ctx.Err() == nil {
		p := problemOf(spent(err))
		_ = a.Line(errorLine{"error", p})
		return exit(exitOf(p.Code))
	}
	if err != nil {
		return err
	}
	return a.Line(linkedLine{"linked", true, linked.GetAccountId(), linked.GetTier(), linked.GetLinkedAt(),
		linked.ExpiresAt, linked.GetAuthFile(), linked.GetPollCount()})
}

// spent adds what a person must know when a code is gone that was shown to them a moment ago: an approval may have been
// given whose answer was lost on the way (the backend revokes such a token by itself).
func spent(err error) error {
	var e *client.Error
	if errors.As(err, &e) && e.Code == "unknown_device_code" {
		return &client.Error{Code: e.Code, Message: e.Message, Retryable: e.Retryable, FixHint: term.SpentHint}
	}
	return err
}
