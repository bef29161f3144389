package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
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
