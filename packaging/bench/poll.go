package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const slice = 300 * time.Millisecond

// pollToken measures pending polls a second against a bare handler with one point read, in interleaved slices.
func (b *bench) pollToken() error {
	return b.rivals("polls", func(r rival) error {
		bodies, err := issue(r.ours, connections)
		if err != nil {
			return err
		}
		if _, err := load(r.ours, bodies); err != nil { // every code's interval reaches its cap: no more writes
			return err
		}
		var ours, floor []time.Duration
		for range max(20, b.runs/2) {
			o, err := load(r.ours, bodies)
			if err != nil {
				return err
			}
			f, err := load(r.bar, bodies)
			if err != nil {
				return err
			}
			ours, floor = append(ours, o), append(floor, f)
		}
		o, f := 1/median(ours).Seconds(), 1/median(floor).Seconds()
		b.rows = append(b.rows, row{"token poll, pending, 32 connections, " + r.engine + " / bare handler with one point read",
			fmt.Sprintf("%.0f /s", o), fmt.Sprintf("%.0f /s", f), ratio(o, f), ">= 0.8"})
		return nil
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
		"SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("5a", 32), "SERVICE_BACKEND_LOG_LEVEL=error")
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

// load polls for a slice of time over one connection a body and gives the mean time of an answer.
func load(url string, bodies [][]byte) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(bodies)}}
	defer client.CloseIdleConnections()
	var answers atomic.Int64
	errs := make(chan error, len(bodies))
	var wg sync.WaitGroup
	start := time.Now()
	for _, body := range bodies {
		wg.Go(func() {
			for time.Since(start) < slice {
				resp, err := client.Post(url+"/api/auth/device/token", "application/json", bytes.NewReader(body))
				if err != nil {
					errs <- err
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					errs <- fmt.Errorf("poll answered %d", resp.StatusCode)
					return
				}
				answers.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return time.Since(start) / time.Duration(max(1, answers.Load())), nil
	}
}
