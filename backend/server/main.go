package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/osservice"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/supervised"
)

// Main runs service-backend and returns its exit code: 0, or 1 after an error. The commands of `service` return 1 for a
// negative result and 2 for an error.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := Root(stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case errors.As(err, &code): // the command has already printed the error
		return int(code)
	case err != nil:
		fmt.Fprintln(stderr, "service-backend:", err)
		return 1
	}
	return 0
}

// Root returns the commands of service-backend. The server logs to stderr.
func Root(stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: osservice.Name, Short: "The HTTP server: linking, accounts, simulator sessions",
		Long: "Serves linking, accounts and simulator sessions over HTTP.\n" +
			"To try it: SERVICE_BACKEND_HMAC_KEY=$(openssl rand -hex 32) service-backend\n" +
			"To keep it running: sudo service-backend service install",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return supervised.Run(cmd.Context(), osservice.Name, func(ctx context.Context) error {
				return serve(ctx, cmd, stderr)
			})
		},
	}
	root.AddCommand(settings(root.PersistentFlags()), adminCommand(), serviceCommand(), &cobra.Command{
		Use: "version", Short: "Print version, commit and build time", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "service-backend %s commit %s built %s\n",
				buildinfo.Version, buildinfo.Commit, buildinfo.BuiltAt)
		},
	})
	return root
}

// settings registers a flag for every setting, and returns the help topic that lists all of them. The help of other
// commands shows only the most common ones.
func settings(flags *pflag.FlagSet) *cobra.Command {
	var all pflag.FlagSet
	config.Flags(&all)
	config.Flags(flags)
	usual := []string{"base-url", "config", "data-dir", "database", "hmac-key-file", "listen", "log-level"}
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(usual, f.Name) })
	return &cobra.Command{
		Use: "settings", Short: "Every setting as a flag, with its default",
		Long: "Each is also a line of the settings file (--config) and a variable; the documentation's page\n" +
			"\"operating\" explains them.\n\n" + strings.TrimRight(all.FlagUsagesWrapped(helpWidth), "\n"),
	}
}

// helpWidth is the width of the help on settings, in columns.
const helpWidth = 100

// serve serves until ctx ends, and then drains.
func serve(ctx context.Context, cmd *cobra.Command, stderr io.Writer) error {
	c, err := config.Load(cmd.Flags())
	var level slog.Level
	switch {
	case err != nil:
		return err
	case len(c.HMACKey) == 0:
		return ErrNoKey
	}
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return err
	}
	output := supervised.Output(osservice.Name, stderr)
	log := slog.New(slog.NewJSONHandler(output, &slog.HandlerOptions{Level: level}))
	notify := supervised.NewNotifier()
	listeners, err := listenAt(ctx, c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	backend, err := app.New(ctx, app.Options{Config: c, Log: log})
	if err != nil {
		return errors.Join(err, loopback.Close(listeners))
	}
	log.Info("started", "address", listeners[0].Addr().String(), "backend", c.BaseURL, "version", buildinfo.Version)
	notify.Ready()
	defer context.AfterFunc(ctx, func() { notify.Stopping("asked to") })()
	err = backend.Serve(ctx, listeners...)
	log.Info("drained")
	return err
}

// listenAt listens on an address of the form host:port. At localhost it listens on both loopback addresses: browsers
// may use either, and another user could otherwise occupy the port on the second one.
func listenAt(ctx context.Context, address string) ([]net.Listener, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(host, "localhost") {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	switch {
	case err != nil:
		return nil, err
	case port == 0:
		return loopback.Listen(ctx, port)
	}
	return loopback.ListenExactly(ctx, port)
}
