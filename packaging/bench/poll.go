package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const eachPolls = 100 // polls of one connection in one slice

// pollToken measures pending polls a second against a bare handler with one point read. Either has a code for each
// connection. The first slice, which does not count, raises every code's interval to its cap: after it nothing is written.
func (b *bench) pollToken() error {
	return b.rivals("polls", func(r rival) error {
		bodies := map[string][][]byte{}
		for _, url := range []string{r.ours, r.bar} {
			var err error
			if bodies[url], err = issue(url, connections); err != nil {
				return err
			}
		}
		client := newLoad(connections)
		defer client.CloseIdleConnections()
		return b.duel(r, "token poll, pending, 32 connections, %s / bare handler with one point read", ">= 0.8", connections*eachPolls,
			func() (func(string) error, error) {
				return func(url string) error {
					return together(connections, eachPolls, func(n int) error {
						return exchange(client, url+"/api/auth/device/token", bodies[url][n/eachPolls], http.StatusOK, `"pending":true`)
					})
				}, nil
			})
	})
}

func (b *bench) startBackend() (*exec.Cmd, string, error) { return b.startBackendOn("") }

// startBackendOn starts the backend on a database; empty: a SQLite file of its own.
func (b *bench) startBackendOn(database string, settings ...string) (*exec.Cmd, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	url := "http://127.0.0.1:" + port
	data, err := os.MkdirTemp(b.work, "backend")
	if err != nil {
		return nil, "", err
	}
	if database == "" {
		database = filepath.Join(data, "service.db")
	}
	cmd := b.command("service-backend")
	cmd.Env = append(cmd.Env,
		"SERVICE_BACKEND_DATABASE="+database, "SERVICE_BACKEND_DATA_DIR="+data,
		"SERVICE_BACKEND_LISTEN=127.0.0.1:"+port, "SERVICE_BACKEND_BASE_URL="+url,
		"SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("5a", 32), "SERVICE_BACKEND_LOG_LEVEL=error",
		"SERVICE_BACKEND_SESSIONS_PER_MINUTE=100000")
	cmd.Env = append(cmd.Env, settings...)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	for range 200 {
		resp, err := http.Get(url + "/api/health")
		if err == nil {
			resp.Body.Close()
			return cmd, url, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	cmd.Process.Kill()
	return nil, "", fmt.Errorf("service-backend did not answer at %s", url)
}

// issue starts n device-code flows and gives the bodies that poll them.
func issue(url string, n int) ([][]byte, error) {
	var bodies [][]byte
	for range n {
		req, err := http.NewRequest(http.MethodPost, url+"/api/auth/device/code", strings.NewReader(`{"scope":"account_full"}`))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Service-Install-Id", "inst_bench")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		var code struct{ DeviceCode string }
		err = json.NewDecoder(resp.Body).Decode(&code)
		resp.Body.Close()
		if err != nil || code.DeviceCode == "" {
			return nil, fmt.Errorf("issuing a device code: status %d, %w", resp.StatusCode, err)
		}
		body, _ := json.Marshal(map[string]string{"deviceCode": code.DeviceCode})
		bodies = append(bodies, body)
	}
	return bodies, nil
}
