//go:build linux

package main

import (
	"testing"

	"github.com/service-dev/service/packaging/llmtest"
	"github.com/service-dev/service/proto/backendapi"
)

// A micro-dollar that the provider's records do not explain is a finding, whatever the provider and other faults do.
func TestAccount_ComparesWithTheBook(t *testing.T) {
	const bill = 10*2 + 3*10
	entry := llmtest.Call{Path: "/v1/messages", In: 10, Out: 3, Body: map[string]any{
		"messages": []any{map[string]any{"role": "user", "content": "call"}}}}
	for name, c := range map[string]struct {
		model, outcome     string
		ownKey             bool
		charged, estimated int64
		counted, findings  int
		end                string
	}{
		"answered":                     {llmtest.Good, ok, false, bill, 0, 1, 0, answered},
		"a micro-dollar too much":      {llmtest.Good, ok, false, bill + 1, 0, 1, 1, answered},
		"for nothing":                  {llmtest.Good, ok, false, 0, 0, 1, 1, answered},
		"left":                         {llmtest.Good, left, false, bill, 0, 1, 0, answered},
		"left for nothing":             {llmtest.Good, left, false, 0, 0, 1, 1, answered},
		"estimated in spite of usage":  {llmtest.Good, ok, false, bill, 1, 1, 1, answered},
		"cut, and never charged":       {llmtest.Good, noBackend, false, 0, 0, 0, 0, cut},
		"cut, and charged":             {llmtest.Good, noBackend, false, bill, 0, 1, 0, failed},
		"cut, and charged by a part":   {llmtest.Good, noBackend, false, bill - 1, 0, 1, 1, failed},
		"estimated":                    {llmtest.UsageNone, ok, false, bill + 7, 1, 1, 0, falseReceipt},
		"estimated beyond every bound": {llmtest.UsageNone, ok, false, 100_000, 1, 1, 1, falseReceipt},
		"own key":                      {llmtest.Good, ok, true, 0, 0, 1, 0, ofOwnKey},
		"own key, but charged":         {llmtest.Good, ok, true, bill, 0, 1, 1, ofOwnKey},
	} {
		a := &modelApp{soak: &soak{testbed: &testbed{results: newResults()}}, ownKey: c.ownKey, ends: map[string]string{},
			charged: map[string]int64{}}
		a.seen.MicroUSD = 500
		now := backendapi.GatewayUsage{Totals: backendapi.GatewaySums{MicroUSD: 500 + c.charged, Estimated: c.estimated}}
		call := &modelCall{id: "call", api: "messages", model: c.model, output: 9, outcome: c.outcome}
		a.account([]*modelCall{call}, now, c.counted, []llmtest.Call{entry})
		if _, _, n := a.results.sum(); n != c.findings || a.ends["call"] != c.end || a.charged[c.end] != c.charged {
			t.Errorf("%s: got %d findings, ends %v, charges %v, want those in the table", name, n, a.ends, a.charged)
		}
	}
}
