//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/test/pgtest"
)

// newBackend starts a backend on SQLite, or on its own PostgreSQL server, which stop stops.
func (w *testbed) newBackend(postgres bool) (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	stop = func() {}
	data := filepath.Join(w.root, "data")
	database := filepath.Join(data, "service.db")
	if postgres {
		cluster, err := pgtest.StartDurable()
		if err != nil {
			return nil, fmt.Errorf("start PostgreSQL: %w", err)
		}
		stop = cluster.Stop
		if database, err = cluster.Create(); err != nil {
			return stop, err
		}
	}
	models, err := w.offerModels()
	if err != nil {
		return stop, err
	}
	address := "localhost:" + strconv.Itoa(port)
	w.backend = &backend{
		url: "http://" + address, program: filepath.Join(w.bin, "service-backend"),
		logs: filepath.Join(w.root, "backend.log"),
		env: append(append(models, w.env...),
			"SERVICE_BACKEND_DATABASE="+database, "SERVICE_BACKEND_DATA_DIR="+data,
			"SERVICE_BACKEND_LISTEN="+address, "SERVICE_BACKEND_BASE_URL=http://"+address,
			"SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("5a", 32), "SERVICE_BACKEND_CREDENTIALS_KEY="+strings.Repeat("a5", 32),
			"SERVICE_BACKEND_LINK_POLL_INTERVAL=1", "SERVICE_BACKEND_LOG_LEVEL=warn"),
	}
	return stop, w.backend.start()
}

// backend is a service-backend process that can be restarted.
type backend struct {
	url, program, logs string
	env                []string
	cmd                *exec.Cmd
	kills              atomic.Int64 // number of completed kills
}

// healthy reports whether the backend responds within the limit.
func (b *backend) healthy(limit time.Duration) bool {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	return eventually(limit, func() bool {
		resp, err := client.Get(b.url + "/api/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// start starts the backend on the same data and waits until it responds.
func (b *backend) start() error {
	log, err := os.OpenFile(b.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	b.cmd = exec.Command(b.program)
	b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = b.env, log, log
	if err := b.cmd.Start(); err != nil {
		return err
	}
	if !b.healthy(20 * time.Second) {
		return errors.New("service-backend does not respond")
	}
	return nil
}

func (b *backend) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		b.cmd = nil
		b.kills.Add(1)
	}
}
