package session

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// reachWait is the timeout for connecting to this machine.
const reachWait = 5 * time.Second

// reachApps connects to the address where apps attach, as the app will. It detects a sandbox with its own network,
// where an app cannot connect and would only be reported as not attached.
func reachApps(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("parse the app endpoint: %w", err)
	}
	dialer := net.Dialer{Timeout: reachWait}
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err == nil {
		return conn.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &problem.Error{Code: problem.CodeLoopbackUnreachable,
		Message: fmt.Sprintf("apps cannot attach at %s from here: %v", u.Host, err),
		FixHint: "Allow connections to 127.0.0.1 in the sandbox or container in which this command runs, or run it " +
			"outside; if the daemon was started in another one, `servicectl daemon restart` here starts one that this command " +
			"reaches."}
}
