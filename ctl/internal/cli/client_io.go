package cli

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/clientio"
	"github.com/service-dev/service/ctl/internal/dialer"
	contract "github.com/service-dev/service/internal/clientio"
)

// clientIO returns the command that service-mcp starts when the daemon first needs to open a page or to read or write
// a file. Users do not run it.
func (a *app) clientIO() *cobra.Command {
	return &cobra.Command{
		Use: "client-io", Short: "Open pages and use files for the daemon, with this process's rights", Hidden: true,
		Args: cobra.NoArgs,
		Long: "Started by service-mcp. Reads a token from stdin, connects to the daemon and executes its requests until " +
			"stdin ends.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serveClientIO(cmd.Context(), a.In) },
	}
}

func serveClientIO(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() || !contract.IsToken(lines.Text()) {
		return errors.New("stdin does not begin with a token")
	}
	daemon, err := dialer.Find()
	if err != nil {
		return err
	}
	conn, err := clientio.Dial(daemon, contract.Handshake{Token: lines.Text(), Asked: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends when stdin closes; the process may exit before this read returns
		lines.Scan()
		cancel()
	}()
	return clientio.Serve(ctx, conn)
}
