//go:build linux

package main

import (
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

// A micro-dollar that the provider's records do not explain is a finding, regardless of the provider and other
// faults.
func TestAccount_ComparesWithTheBook(t *testing.T) {
	const bill = 10*2 + 3*10
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
		"left while it reasons":        {llmtest.Reasons, left, false, bill, 0, 1, 0, answered},
		"left while it hangs":          {llmtest.Hangs, left, false, 9*10 + 20, 1, 1, 0, falseReceipt},
		"left for less than the hold":  {llmtest.Hangs, left, false, bill, 1, 1, 1, falseReceipt},
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
		a.account([]*modelCall{call}, now, c.counted, []entry{{"call", bill}})
		if _, _, n := a.results.sum(); n != c.findings || a.ends["call"] != call.kind()+c.end ||
			a.charged[call.kind()+c.end] != c.charged {
			t.Errorf("%s: got %d findings, ends %v, charges %v, want those in the table", name, n, a.ends, a.charged)
		}
	}
}

// A turn without a receipt costs at most its hold, and the whole hold if its app has left.
func TestAccount_ComparesTurns(t *testing.T) {
	longest := llmtest.CatalogueVoicePrices.AudioOut * llmtest.VoiceOutput
	for charged, findings := range map[int64]int{maxTurn: 0, maxTurn + 1: 1, longest: 0, longest - 1: 1} {
		a := &modelApp{soak: &soak{testbed: &testbed{results: newResults()}}, ends: map[string]string{},
			charged: map[string]int64{}}
		talk := &conversation{app: a, model: llmtest.Hangs}
		call := &modelCall{id: "turn", api: "realtime", model: talk.model, talk: talk, outcome: left}
		a.account([]*modelCall{call}, backendapi.GatewayUsage{Totals: backendapi.GatewaySums{MicroUSD: charged,
			Estimated: 1}}, 1, []entry{{"turn", 92}})
		if _, _, n := a.results.sum(); n != findings || a.ends["turn"] != ofTurns+falseReceipt {
			t.Errorf("charged %d: got %d findings, ends %v, want %d", charged, n, a.ends, findings)
		}
	}
}

// The provider's bill for the greedy account is paid by the account or, beyond the holds, by the operator.
func TestGreedy_BillIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		charged, billed, aboveHolds, lost, operator int64
		findings                                    int
	}{
		"receipts":                       {100, 100, 0, 0, 0, 0},
		"holds":                          {130, 100, 0, 0, 0, 0},
		"above holds":                    {80, 100, 30, 0, 20, 0},
		"above holds, and not booked":    {100, 100, 30, 0, 0, 1},
		"less than the bill":             {99, 100, 0, 0, 0, 1},
		"the operator pays for leavers":  {80, 100, 0, 0, 20, 1},
		"the backend was killed":         {80, 80, 0, 20, 0, 0},
		"killed, and the operator knows": {80, 80, 0, 20, 5, 0},
	} {
		g := &greedy{soak: &soak{testbed: &testbed{results: newResults()}}, charged: c.charged, billed: c.billed,
			aboveHolds: c.aboveHolds, lost: c.lost}
		g.compare(ledger{Operator: c.operator})
		if _, _, n := g.results.sum(); n != c.findings {
			t.Errorf("%s: got %d findings, want %d", name, n, c.findings)
		}
	}
}
