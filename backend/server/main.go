package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/proto/buildinfo"
)

// Main is service-backend. It gives the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use: "service-backend", Short: "The HTTP server: linking, accounts, simulator sessions",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, stderr) },
	}
	config.Flags(root.PersistentFlags())
	root.AddCommand(adminCommand(), &cobra.Command{
		Use: "version", Short: "Print version, commit and build time", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "service-backend %s commit %s built %s\n", buildinfo.Version, buildinfo.Commit, buildinfo.BuiltAt)
		},
	})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "service-backend:", err)
		return 1
	}
	return 0
}

func serve(cmd *cobra.Command, stderr io.Writer) error {
	c, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	if len(c.HMACKey) == 0 {
		return ErrNoKey
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	var lc net.ListenConfig
	listener, err := lc.Listen(cmd.Context(), "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", c.Listen, err)
	}
	backend, err := app.New(cmd.Context(), app.Options{Config: c, Log: log})
	if err != nil {
		listener.Close()
		return err
	}
	log.Info("serving", "listen", listener.Addr().String(), "base_url", c.BaseURL, "version", buildinfo.Version)
	err = backend.Serve(cmd.Context(), listener)
	log.Info("drained")
	return err
}

func adminCommand() *cobra.Command {
	admin := &cobra.Command{Use: "admin", Short: "Look after links, passwords and the credentials' keys, on the database itself"}
	var account, email, linkID string
	revoke := &cobra.Command{
		Use: "revoke", Short: "Revoke the links of an account, or one link; the next call with its token gets 401", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (account == "") == (email == "") && linkID == "" || linkID != "" && account+email != "" {
				return fmt.Errorf("name exactly one of --account, --email and --link")
			}
			return withStore(cmd, func(s *sqlstore.Store) error {
				n, err := s.Revoke(cmd.Context(), account+strings.ToLower(strings.TrimSpace(email)), linkID, time.Now())
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "revoked %d\n", n)
				if n == 0 {
					return fmt.Errorf("no live link matches; service-backend admin links shows an account's")
				}
				return nil
			})
		},
	}
	revoke.Flags().StringVar(&account, "account", "", "account id")
	revoke.Flags().StringVar(&email, "email", "", "e-mail address of the account")
	revoke.Flags().StringVar(&linkID, "link", "", "id of one link")
	admin.AddCommand(revoke, &cobra.Command{
		Use: "links ACCOUNT-OR-EMAIL", Short: "List an account's links", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, func(s *sqlstore.Store) error { return printLinks(cmd, s, strings.ToLower(strings.TrimSpace(args[0]))) })
		},
	})
	admin.AddCommand(rotateCredentialsKey())
	admin.AddCommand(resetLinkCommand())
	return admin
}

func printLinks(cmd *cobra.Command, s *sqlstore.Store, account string) error {
	links, err := s.Links(cmd.Context(), account)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LINK\tACCOUNT\tHOST\tOS\tLINKED\tREVOKED")
	for _, l := range links {
		revoked := "-"
		if !l.RevokedAt.IsZero() {
			revoked = l.RevokedAt.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.AccountID, l.Host, l.OS, l.LinkedAt.Format(time.RFC3339), revoked)
	}
	return t.Flush()
}

func withStore(cmd *cobra.Command, f func(*sqlstore.Store) error) error {
	c, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	s, err := sqlstore.Attach(cmd.Context(), c.Database)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}
