//go:build linux

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/service-dev/service/packaging/pgtest"
)

// newBackend starts a backend, on SQLite or on a PostgreSQL server of its own; stop ends that server.
func (w *world) newBackend(postgres bool) (stop func(), err error) {
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
		cluster, err := pgtest.Start()
		if err != nil {
			return nil, fmt.Errorf("starting PostgreSQL: %w", err)
		}
		stop = cluster.Stop
		if database, err = cluster.Create(); err != nil {
			return stop, err
		}
	}
	address := "localhost:" + strconv.Itoa(port)
	w.backend = &backend{
		url: "http://" + address, program: filepath.Join(w.bin, "service-backend"), logs: filepath.Join(w.root, "backend.log"),
		env: append(append([]string{}, w.env...),
			"SERVICE_BACKEND_DATABASE="+database, "SERVICE_BACKEND_DATA_DIR="+data,
			"SERVICE_BACKEND_LISTEN="+address, "SERVICE_BACKEND_BASE_URL=http://"+address,
			"SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("5a", 32), "SERVICE_BACKEND_CREDENTIALS_KEY="+strings.Repeat("a5", 32),
			"SERVICE_BACKEND_LINK_POLL_INTERVAL=1", "SERVICE_BACKEND_LOG_LEVEL=warn"),
	}
	return stop, w.backend.start()
}
