package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

const eachPolls = 100 // polls per connection and slice

// pollToken measures pending polls per second, compared with a baseline handler that reads one row. Each connection
// has its own code on both sides. The first slice, which does not count, raises every code's interval to its maximum,
// so that later polls write nothing.
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
		return b.duel(r, "token poll, pending, 32 connections, %s / bare handler with one point read", ">= 0.8",
			connections*eachPolls,
			func() (func(string) error, error) {
				return func(url string) error {
					return together(connections, eachPolls, func(n int) error {
						return exchange(client, url+"/api/auth/device/token", bodies[url][n/eachPolls], http.StatusOK, `"pending":true`)
					})
				}, nil
			})
	})
}

// issue starts n device-code flows and returns the request bodies that poll them.
func issue(url string, n int) ([][]byte, error) {
	var bodies [][]byte
	for range n {
		req, err := http.NewRequest(http.MethodPost, url+"/api/auth/device/code",
			strings.NewReader(`{"scope":"account_full"}`))
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
			return nil, fmt.Errorf("issue a device code: status %d, %w", resp.StatusCode, err)
		}
		body, _ := json.Marshal(map[string]string{"deviceCode": code.DeviceCode})
		bodies = append(bodies, body)
	}
	return bodies, nil
}
