package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/passwords"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/textfile"
)

// maxPasswordLine is the maximum length in bytes of the line that --stdin reads. No valid password is that long.
const maxPasswordLine = 4 << 10

// passwordTries is how many times the user can enter a password before the command gives up.
const passwordTries = 3

func (a *app) account() *cobra.Command {
	return command.Group("account", "Set a forgotten password", "", a.resetPassword())
}

// resetOptions are the flags of account reset-password.
type resetOptions struct{ stdin, revokeLinks, removePasskeys bool }

const resetPasswordHelp = `Sets a new password of an account of the embedded backend, whose data belongs to you, and signs out its browsers.
Asks for the password twice, and whether to unlink agents and remove passkeys as well.
Without EMAIL it takes the only account.
Another backend keeps its accounts itself: ask for a new password on its page /forgot.
Exit code: 0 changed, 1 refused, 2 could not be run.`

func (a *app) resetPassword() *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use: "reset-password [EMAIL]", Short: "Set a new password for an account on this machine",
		Long: resetPasswordHelp,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isTerminal := term.CanConfirm(a.In); isTerminal == o.stdin {
				return passwordSource(isTerminal)
			}
			return a.WithClient(cmd.Context(), func(c *client.Client) error {
				return a.runResetPassword(cmd.Context(), c, command.FirstArg(args), o)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stdin, "stdin", false, "read the password from the first line of standard input, and do not ask")
	f.BoolVar(&o.revokeLinks, "revoke-links", false, "also unlink every agent of the account")
	f.BoolVar(&o.removePasskeys, "remove-passkeys", false, "also remove every passkey of the account")
	return cmd
}

// passwordSource returns an error if there is neither a terminal nor --stdin to read the password from.
func passwordSource(isTerminal bool) error {
	if isTerminal {
		return &command.UsageError{Message: "--stdin reads a file or a pipe, but standard input is a terminal",
			Next: "run it without --stdin, which asks for the password"}
	}
	return &command.UsageError{Message: "the password can be asked for only on a terminal",
		Next: "pass it with `servicectl account reset-password EMAIL --stdin < FILE`"}
}

func (a *app) runResetPassword(ctx context.Context, c *client.Client, email string, o resetOptions) error {
	of, err := chooseAccount(ctx, c, strings.TrimSpace(email))
	if err != nil {
		return err
	}
	p := client.NewPassword{Email: of.Email, RevokeLinks: o.revokeLinks, RemovePasskeys: o.removePasskeys}
	if p.Password, err = a.newPassword(ctx, p.Email, o.stdin); err != nil {
		return err
	}
	if err := a.askWhatEnds(ctx, of, o, &p); err != nil {
		return err
	}
	reset, err := c.ResetPassword(ctx, p)
	if err != nil {
		return err
	}
	return a.Print(reset, func() {
		a.PasswordReset(term.PasswordReset{
			Email: p.Email, SignInURL: reset.SignInURL, Browsers: reset.BrowsersSignedOut, Links: reset.LinksRevoked,
			Passkeys: reset.PasskeysRemoved, HadLinks: of.Links, HadPasskeys: of.Passkeys,
		})
	})
}

// chooseAccount returns the account with the address, or the only account if the address is empty.
func chooseAccount(ctx context.Context, c *client.Client, email string) (*client.LocalAccount, error) {
	list, err := c.LocalAccounts(ctx, email)
	for _, a := range list {
		if strings.EqualFold(a.Email, email) {
			return &a, nil
		}
	}
	if err == nil && email != "" {
		list, err = c.LocalAccounts(ctx, "") // list the addresses to choose from
	}
	if err != nil {
		return nil, err
	}
	emails := make([]string, len(list))
	for i, a := range list {
		emails[i] = a.Email
	}
	switch {
	case len(list) == 0:
		return nil, &problem.Error{Code: problem.CodeAccountNotFound, Message: "the embedded backend has no account yet",
			FixHint: "Run `servicectl login` and sign up on the page that it opens."}
	case email != "":
		return nil, &problem.Error{Code: problem.CodeAccountNotFound,
			Message: fmt.Sprintf("no account of the embedded backend has the e-mail address %s", email),
			FixHint: "Name one of: " + strings.Join(emails, ", ") + "."}
	case len(list) == 1:
		return &list[0], nil
	}
	return nil, &command.UsageError{Message: "the embedded backend has several accounts",
		Next: "name one of: " + strings.Join(emails, ", ")}
}

// newPassword reads the new password: twice from a terminal, or one line from standard input. A password typed on a
// terminal is checked immediately.
func (a *app) newPassword(ctx context.Context, email string, stdin bool) (string, error) {
	if stdin {
		line, err := bufio.NewReader(io.LimitReader(a.In, maxPasswordLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		text, err := textfile.Decode([]byte(line))
		if err != nil {
			return "", badPassword("the password was not read from standard input: " + err.Error())
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	}
	for try := 1; ; try++ {
		typed, refused, err := a.typedPassword(ctx, email)
		switch {
		case errors.Is(err, io.EOF):
			return "", badPassword("no password was entered")
		case err != nil || refused == "":
			return typed, err
		case try == passwordTries:
			return "", badPassword(refused)
		}
		a.PasswordRefused(refused)
	}
}

// typedPassword asks for the new password until it is valid or no tries are left. refused is the reason why the
// latest password is invalid.
func (a *app) typedPassword(ctx context.Context, email string) (typed, refused string, err error) {
	typed, err = a.Secret(ctx, a.In, term.PasswordQuestion(email))
	if err != nil {
		return "", "", err
	}
	if err := passwords.Check(typed); err != nil {
		return "", err.Error(), nil
	}
	again, err := a.Secret(ctx, a.In, term.PasswordAgainQuestion)
	if err == nil && again != typed {
		refused = term.PasswordsDifferMessage
	}
	return typed, refused, err
}

func badPassword(message string) error {
	return &problem.Error{Code: problem.CodePasswordNotAccepted, Message: message + "; nothing was changed",
		FixHint: "Run the command again."}
}

// askWhatEnds asks on a terminal whether to revoke links and remove passkeys as well, unless flags already decide that.
func (a *app) askWhatEnds(ctx context.Context, of *client.LocalAccount, o resetOptions, p *client.NewPassword) error {
	for _, q := range []struct {
		ends     *bool
		count    int
		question func(int) string
	}{
		{&p.RevokeLinks, of.Links, term.RevokeLinksQuestion},
		{&p.RemovePasskeys, of.Passkeys, term.RemovePasskeysQuestion},
	} {
		if o.stdin || *q.ends || q.count == 0 {
			continue
		}
		var err error
		if *q.ends, err = a.Confirm(ctx, a.In, q.question(q.count)); err != nil {
			return err
		}
	}
	return nil
}
