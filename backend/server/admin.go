package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/telemetry"
)

func adminCommand() *cobra.Command {
	admin := &cobra.Command{Use: "admin", Short: "Manage accounts, links, credit, passwords and keys, and summarise usage, " +
		"directly on the database"}
	admin.AddCommand(accountCommand(), linksCommand(), revokeCommand(),
		activeCommand("suspend", "Suspend an account: sign-ins and its links are refused until restore", false),
		activeCommand("restore", "Restore a suspended account together with its links", true), trailCommand(),
		creditCommand(), ledgerCommand(), telemetryCommand(), resetLinkCommand(), rotateCredentialsKey(), replaceKeyCommand())
	return admin
}

// operator contains the services that the admin commands use, on the server's database. Changes are recorded in the
// account's audit log and in the linking trail. Running servers apply changes from the next call on.
type operator struct {
	accounts *account.Service
	links    *link.Service
	credit   *credit.Ledger
	usage    *telemetry.Service
	out      io.Writer
	json     bool
}

// operate runs f on the server's database. Commands that make a change or read the trail require the server's key,
// because hashes made with another key do not match.
func operate(cmd *cobra.Command, needsKey bool, f func(ctx context.Context, o operator) error) error {
	c, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	return withDatabase(cmd, c, func(d *db.DB) error {
		if needsKey {
			if err := checkKey(cmd.Context(), d, c.HMACKey); err != nil {
				return err
			}
		}
		asJSON, err := cmd.Flags().GetBool("json")
		if err != nil {
			return err
		}
		hash, quiet := secret.NewHasher(c.HMACKey), slog.New(slog.DiscardHandler)
		ledger, err := app.NewLedger(c, d, quiet, nil)
		if err != nil {
			return err
		}
		return f(cmd.Context(), operator{
			credit:   ledger,
			accounts: account.New(account.Options{Store: account.NewStore(d), Hasher: hash, Log: quiet}),
			links:    link.New(link.Options{Store: link.NewStore(d), Hasher: hash, Log: quiet}),
			usage:    telemetry.New(telemetry.Options{Store: telemetry.NewStore(d), Hasher: hash, Log: quiet}),
			out:      cmd.OutOrStdout(), json: asJSON,
		})
	})
}

// operateOn is like operate, for the account that the operator named.
func operateOn(cmd *cobra.Command, idOrEmail string, needsKey bool,
	f func(ctx context.Context, o operator, a account.Account) error) error {
	return operate(cmd, needsKey, func(ctx context.Context, o operator) error {
		a, err := o.find(ctx, idOrEmail)
		if err != nil {
			return err
		}
		return f(ctx, o, a)
	})
}

// checkKey returns an error unless the configured key belongs to the database.
func checkKey(ctx context.Context, d *db.DB, key []byte) error {
	if len(key) == 0 {
		return ErrNoKey
	}
	return d.CheckKey(ctx, secret.NewHasher(key).Check())
}

// configured returns the RunE of a command that reads the settings.
func configured(run func(*cobra.Command, config.Config, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(cmd.Flags())
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
}

func withDatabase(cmd *cobra.Command, c config.Config, f func(*db.DB) error) error {
	d, err := db.Attach(cmd.Context(), c.Database)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(d)
}

// withJSON adds the flag --json, which operate reads.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// find returns the account that the operator named by ID or address.
func (o operator) find(ctx context.Context, idOrEmail string) (account.Account, error) {
	a, err := o.accounts.Find(ctx, idOrEmail)
	return a, explain(err, account.ErrNotFound, "no account has that id or e-mail address")
}

// explain replaces the error known with a text for the operator. It returns other errors unchanged.
func explain(err, known error, text string) error {
	if errors.Is(err, known) {
		return errors.New(text)
	}
	return err
}

// print writes v as JSON if requested, and otherwise the output of text in aligned columns.
func (o operator) print(v any, text func(w io.Writer)) error {
	if o.json {
		return printJSON(o.out, v)
	}
	t := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	text(t)
	return t.Flush()
}

// table writes rows under a header. If there are no rows, it writes none instead.
func table[R any](w io.Writer, none, header string, rows []R, cells func(R) []string) {
	if len(rows) == 0 {
		fmt.Fprintln(w, none)
		return
	}
	fmt.Fprintln(w, header)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(cells(r), "\t"))
	}
}

// stamp formats a time for output, or returns "-".
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// said returns a value that an install reported, or "-" if it is empty.
func said(s string) string { return cmp.Or(s, "-") }

// accountJSON is an account as printed for the operator.
type accountJSON struct {
	ID         string `json:"accountId"`
	Email      string `json:"email"`
	Verified   bool   `json:"emailVerified"`
	State      string `json:"state"` // active | suspended
	CreatedAt  string `json:"createdAt"`
	LiveLinks  int    `json:"liveLinks"`
	LastUsedAt string `json:"lastUsedAt,omitempty"`
	Changed    bool   `json:"changed,omitempty"` // whether suspend or restore changed the state
}

func accountCommand() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "account ACCOUNT-OR-EMAIL", Short: "Show an account and its state", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operateOn(cmd, args[0], false, func(ctx context.Context, o operator, a account.Account) error {
				return o.tellAccount(ctx, a, false)
			})
		},
	})
}

func (o operator) tellAccount(ctx context.Context, a account.Account, changed bool) error {
	links, err := o.links.Links(ctx, a.ID)
	if err != nil {
		return err
	}
	out := accountJSON{ID: a.ID, Email: a.Email, Verified: a.Verified(), State: "active", CreatedAt: stamp(a.CreatedAt),
		LiveLinks: len(links), Changed: changed}
	next := "see its links: service-backend admin links " + a.ID
	if !a.Active {
		out.State, next = "suspended", "restore it: service-backend admin restore "+a.ID
	}
	if len(links) > 0 && !links[0].LastUsedAt.IsZero() {
		out.LastUsedAt = stamp(links[0].LastUsedAt)
	}
	return o.print(out, func(w io.Writer) {
		verified := "not confirmed"
		if out.Verified {
			verified = "confirmed"
		}
		fmt.Fprintf(w, "account\t%s\nstate\t%s\ne-mail\t%s (%s)\ncreated\t%s\nlinks\t%d live, last used %s\n", out.ID,
			out.State, out.Email, verified,
			out.CreatedAt, out.LiveLinks, said(out.LastUsedAt))
		fmt.Fprintf(w, "next\t%s\n", next)
	})
}

// activeCommand returns the command that suspends or restores an account.
func activeCommand(name, short string, active bool) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: name + " ACCOUNT-OR-EMAIL", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return setActive(cmd, args[0], active) },
	})
}

func setActive(cmd *cobra.Command, who string, active bool) error {
	return operateOn(cmd, who, true, func(ctx context.Context, o operator, a account.Account) error {
		set := o.accounts.Suspend
		if active {
			set = o.accounts.Restore
		}
		changed, err := set(ctx, a.ID, audit.Operator())
		if err != nil {
			return err
		}
		if !changed && !active {
			return errors.New("the account is suspended already; restore it with service-backend admin restore")
		}
		if !changed {
			return errors.New("the account is not suspended")
		}
		a.Active = active
		return o.tellAccount(ctx, a, true)
	})
}
