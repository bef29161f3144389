package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/proto/telemetry"
)

const (
	connections = 32 // concurrent connections in issue and pollToken
	eachIssues  = 20 // device codes per connection and slice
	uploaders   = 8
	eachUploads = 4 // batches per slice
)

// rival is the backend and the baseline handlers, both on the same kind of database.
type rival struct {
	engine    string
	ours, bar string // URLs
}

// rivals runs f with a new rival on each database.
func (b *bench) rivals(what string, f func(r rival) error) error {
	return onDatabases(what, func(engine, database string, bareArgs ...string) error {
		settings := []string{"SERVICE_BACKEND_CODES_PER_MINUTE=100000", "SERVICE_BACKEND_TRUSTED_PROXIES=127.0.0.1"}
		backend, err := b.startBackend(database, settings...)
		if err != nil {
			return err
		}
		defer backend.stop()
		bare, err := b.startBare("bareauth", bareArgs...)
		if err != nil {
			return err
		}
		defer bare.stop()
		return f(rival{engine, backend.url, bare.url})
	})
}

// duel measures the backend and the baseline in alternating slices, and alternates which of them goes first. A slice
// is a fixed number of operations.
func (b *bench) duel(r rival, figure, goal string, slice int, prepare func() (func(url string) error, error)) error {
	var ours, floor []time.Duration
	for round := range max(20, b.runs/2) {
		run, err := prepare()
		if err != nil {
			return err
		}
		turn := []struct {
			url  string
			into *[]time.Duration
		}{{r.ours, &ours}, {r.bar, &floor}}
		for i := range turn {
			t := turn[(i+round)%2]
			var kept *[]time.Duration
			if round > 0 { // the first round warms up
				kept = t.into
			}
			if err := measure(kept, func() error { return run(t.url) }); err != nil {
				return err
			}
		}
	}
	o, f := float64(slice)/median(ours).Seconds(), float64(slice)/median(floor).Seconds()
	b.rows = append(b.rows, ratesRow(fmt.Sprintf(figure, r.engine), o, f, goal))
	return nil
}

// telemetry measures how many usage events per second are stored, against a baseline handler that decodes and appends
// them.
func (b *bench) telemetry() error {
	return b.rivals("telemetry", func(r rival) error {
		client := newLoad(uploaders)
		defer client.CloseIdleConnections()
		const slice = uploaders * eachUploads
		return b.duel(r, "usage events taken, batches of 200, %s / bare handler that decodes and appends them", ">= 0.2",
			slice*telemetry.MaxBatch,
			func() (func(string) error, error) {
				var bodies [slice][]byte
				for i := range bodies {
					var err error
					if bodies[i], err = usage(); err != nil {
						return nil, err
					}
				}
				return func(url string) error {
					return together(uploaders, eachUploads, func(n int) error {
						return exchange(client, url+"/api/telemetry", bodies[n], http.StatusAccepted, `"accepted":200`)
					})
				}, nil
			})
	})
}

// usage returns a batch in the form that a daemon sends.
func usage() ([]byte, error) {
	b := telemetry.Batch{Events: make([]telemetry.Event, telemetry.MaxBatch)}
	now := time.Now().UTC()
	for i := range b.Events {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		e := telemetry.Event{ID: id.String(), At: now.Add(-time.Duration(rand.Int64N(int64(time.Minute)))).Format(
			telemetry.AtLayout), Name: telemetry.ToolCalled}
		e.Fields = map[string]json.RawMessage{}
		for name, value := range map[string]any{"tool": []string{"whoAmI", "getDisplayState", "searchDocs"}[rand.IntN(3)],
			"outcome": "ok", "durationMs": rand.IntN(3000),
			"client": "claude-code", "clientVersion": "2.1.0", "version": "1.4.0", "os": "linux", "arch": "amd64"} {
			if e.Fields[name], err = json.Marshal(value); err != nil {
				return nil, err
			}
		}
		b.Events[i] = e
	}
	return json.Marshal(b)
}

// issue measures how many device codes are issued per second, against a baseline handler with one durable insert.
func (b *bench) issue() error {
	return b.rivals("device codes", func(r rival) error {
		client := newLoad(connections)
		defer client.CloseIdleConnections()
		body := []byte(`{"scope":"account_full"}`)
		return b.duel(r, "device codes issued, 32 connections, %s / bare handler with one durable insert", ">= 0.6",
			connections*eachIssues,
			func() (func(string) error, error) {
				return func(url string) error {
					return together(connections, eachIssues, func(int) error {
						return exchange(client, url+"/api/auth/device/code", body, http.StatusOK, `"deviceCode":"`)
					})
				}, nil
			})
	})
}

// together runs do the given number of times in each of the concurrent workers.
func together(workers, each int, do func(n int) error) error {
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := 0; i < each && errs[w] == nil; i++ {
				errs[w] = do(w*each + i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func newLoad(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}
}

// exchange posts a body from an address not used before, because requests are limited per address, and searches the
// response for text.
func exchange(client *http.Client, url string, body []byte, status int, text string) error {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Service-Install-Id", fmt.Sprintf("inst_bench%d", rand.IntN(1000)))
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", rand.IntN(16), rand.IntN(16), rand.IntN(16)))
	got, answer, err := do(client, req)
	if err == nil && (got != status || !bytes.Contains(answer, []byte(text))) {
		err = fmt.Errorf("%s responded with status %d: %.200s", url, got, answer)
	}
	return err
}

// do sends a request and returns the status and body of the response.
func do(client *http.Client, req *http.Request) (status int, body []byte, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
