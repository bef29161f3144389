// Package clientio connects a client's own process to the daemon and executes the operations that the daemon requests
// (internal/clientio).
package clientio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/clientio/local"
)

// Dial connects to a running daemon as the client identified by h.Token. The connection is ready for Serve.
func Dial(daemon dialer.Daemon, h clientio.Handshake) (io.ReadWriteCloser, error) {
	conn, err := daemon.Dial(daemon.Paths.MCP)
	if err != nil {
		return nil, err
	}
	if err := shakeHands(conn, h); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func shakeHands(conn io.ReadWriter, h clientio.Handshake) error {
	h.IO = clientio.Version
	if err := json.NewEncoder(conn).Encode(h); err != nil {
		return err
	}
	line, err := readAnswer(conn)
	if err != nil {
		return fmt.Errorf("read response to the handshake: %w", err)
	}
	var answer struct {
		OK            bool
		Code, Message string
	}
	if json.Unmarshal(line, &answer) != nil || !answer.OK {
		return fmt.Errorf("the daemon refused the connection: %s", answer.Message)
	}
	return nil
}

// readAnswer reads up to the first newline, and not beyond.
func readAnswer(r io.Reader) ([]byte, error) {
	line := make([]byte, 0, 128)
	for one := make([]byte, 1); len(line) < 4096; {
		if _, err := io.ReadFull(r, one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, errors.New("line is too long")
}

// Open opens a page in this process's environment, which may have a desktop that the daemon lacks.
func Open(ctx context.Context, url string) (clientio.Response, error) {
	return local.New().Do(ctx, clientio.Request{Op: clientio.Open, URL: url})
}

// Serve executes the daemon's requests until the connection or ctx ends, and closes the connection.
func Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	executor := local.New()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 4096), clientio.MaxLine)
	out := json.NewEncoder(conn)
	for lines.Scan() {
		var r clientio.Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("read request of the daemon: %w", err)
		}
		answer, err := executor.Do(ctx, r)
		if err == nil {
			err = out.Encode(answer)
		}
		if err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	return ignoreEnd(ctx, lines.Err())
}

// ignoreEnd discards errors caused by the end of ctx.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
