//go:build linux

package main

import (
	"fmt"
	"time"
)

// localLog tracks an agent's local session and its event log.
type localLog struct {
	id    string
	since int64 // sequence number of the last row read
	sure  int   // acknowledged inputs
	maybe int   // inputs whose response was lost or an error
	rows  int   // inputs found in the log
}

// localSession performs one action in the agent's local session, or opens the session.
func (h *worker) localSession() {
	switch {
	case h.local.id == "" || h.rng.IntN(8) == 0:
		h.openLocal()
	case h.rng.IntN(2) == 0:
		since := time.Now()
		answer, outcome := h.call("injectInput", map[string]any{"sessionId": h.local.id, "kind": "tap"})
		if outcome == "" {
			return
		}
		if h.checkOutcome(h.a.name, "injectInput", outcome, since, answer) {
			h.local.sure++
		} else {
			h.local.maybe++
		}
	default:
		h.readLocal()
	}
}

// openLocal opens or finds the session of the agent's project, which must remain the same through every fault.
func (h *worker) openLocal() {
	since := time.Now()
	project := fmt.Sprintf("com.example.local%d", h.n)
	answer, outcome := h.call("startLocalSimulation", map[string]any{"project": project})
	if outcome == "" || !h.checkOutcome(h.a.name, "startLocalSimulation", outcome, since, answer) {
		return
	}
	id := text(answer, "sessionId")
	h.address.Store(&appAddress{text(answer, "appEndpoint"), text(answer, "appTokenFile")})
	switch {
	case id == "" || text(answer, "project") != project:
		h.results.report("%s: the local session for %s is %q of %v", h.a.name, project, id, answer["project"])
	case h.local.id == "":
		h.local.id = id
	case h.local.id != id:
		h.results.report("%s: the local session of %s is %s, was %s (%d inputs in its log), under %s", h.a.name, project, id,
			h.local.id, h.local.sure, h.activeFaults.names(since))
		h.local = localLog{id: id}
	}
}

// readLocal reads new rows of the log, which must contain every acknowledged input.
func (h *worker) readLocal() {
	sure, all := h.local.sure, h.local.sure+h.local.maybe
	if !h.readOn(h.local.id, &h.local.since, func(row map[string]any) {
		if row["type"] == "input" {
			h.local.rows++
		}
	}) {
		return
	}
	if h.local.rows < sure || h.local.rows > all {
		h.results.report("%s: the log of session %s has %d inputs, %d were acknowledged and %d more tried", h.a.name,
			h.local.id, h.local.rows, sure, all-sure)
		h.local.rows, h.local.maybe = sure, 0 // report a loss only once
	}
}

// readOn reads a log from the last row read to its end, and calls see for each row. It reports missing and repeated
// rows, and returns false if a fault interrupted it.
func (h *worker) readOn(id string, last *int64, see func(row map[string]any)) bool {
	for {
		since := time.Now()
		answer, outcome := h.call("getEventLog", map[string]any{"sessionId": id, "since": *last, "limit": 500})
		if outcome == "" || !h.checkOutcome(h.a.name, "getEventLog", outcome, since, answer) {
			return false
		}
		events, _ := answer["events"].([]any)
		for _, e := range events {
			row, _ := e.(map[string]any)
			if seq, _ := row["seq"].(float64); int64(seq) != *last+1 {
				h.results.report("%s: row %v of session %s comes after row %d", h.a.name, row["seq"], id, *last)
			}
			*last++
			see(row)
		}
		if answer["more"] != true {
			return true
		}
	}
}

// readBrowser reads new rows of the browser session's log and records an app's rows by id.
func (h *worker) readBrowser() bool {
	return h.readOn(h.browser, &h.browserSince, func(row map[string]any) {
		if id, _ := row["id"].(string); row["kind"] == "request" {
			h.requests[id]++
		}
	})
}

// readToEnd reads the logs to the end after the last fault.
func (h *worker) readToEnd() {
	if h.local.id != "" {
		h.readLocal()
	}
	if h.app != nil && h.browser != "" && h.readBrowser() {
		h.app.check(h.browser, h.requests)
	}
}
