package tools

import (
	"slices"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// holdsOf returns the items of a checklist by id; nil means unknown.
func holdsOf(t *testing.T, w *world, args string) map[string]any {
	t.Helper()
	_, answer := w.call(t, "getProductionChecklist", args, IO{})
	holds := map[string]any{}
	for _, item := range answer["items"].([]any) {
		fields := item.(map[string]any)
		holds[fields["id"].(string)] = fields["holds"]
	}
	return holds
}

func TestChecklist_TellsWhatHoldsOfTheGateway(t *testing.T) {
	own, none := "own_key", []backendapi.GatewayModel{{ID: "assistant"}}
	available := []backendapi.GatewayModel{{ID: "assistant", Available: true}}
	day := &backendapi.GatewayCap{LimitMicroUSD: 1}
	some := backendapi.GatewayCredit{BalanceMicroUSD: 1}
	locked := backendapi.GatewayCredit{BalanceMicroUSD: 1, Locked: true}
	for name, c := range map[string]struct {
		usage     backendapi.GatewayUsage
		cap, paid any
	}{
		"nothing is set":   {backendapi.GatewayUsage{Credit: some, Models: none}, false, false},
		"credit is spent":  {backendapi.GatewayUsage{Caps: backendapi.GatewayCaps{Day: day}, Models: available}, true, false},
		"own keys pay":     {backendapi.GatewayUsage{KeySource: &own, Models: available}, false, true},
		"credit is locked": {backendapi.GatewayUsage{Credit: locked, Models: available}, false, false},
		"credit is left":   {backendapi.GatewayUsage{Credit: some, Models: available}, false, true},
	} {
		w := newWorld().linked()
		w.account.usage = c.usage
		holds := holdsOf(t, w, `{}`)
		if holds["spending_cap"] != c.cap || holds["paid"] != c.paid || holds["attests_ios"] != nil ||
			holds["secrets"] != nil {
			t.Errorf("%s: %v", name, holds)
		}
	}
}

// Without a link or a project, no fact is known, and the user is not asked for a link.
func TestChecklist_WorksWithoutAnAccount(t *testing.T) {
	nowhere := newWorld().linked()
	nowhere.here = ""
	for name, w := range map[string]*world{"no link": newWorld(), "no project": nowhere} {
		if holds := holdsOf(t, w, `{}`); holds["spending_cap"] != nil || w.account.calls != 0 || len(holds) < 20 {
			t.Errorf("%s: %v, %d calls; want unknown items and no call", name, holds, w.account.calls)
		}
	}
	w := newWorld().linked()
	if holds := holdsOf(t, w, `{"capabilities":["display"]}`); w.account.calls != 0 || len(holds) == 0 {
		t.Errorf("an app without an assistant: %d calls, %v; want no call", w.account.calls, holds)
	}
}

// Phones attest; apps in browsers and on desktops have an allowance. Neither concerns an app without an assistant.
func TestChecklist_NamesAttestationWhereItExists(t *testing.T) {
	all := []string{"attests_ios", "attests_android", "allowance_web", "allowance_desktop"}
	for args, want := range map[string][]string{
		`{"platform":"ios"}`: all[:1], `{"platform":"android"}`: all[1:2], `{"platform":"web"}`: all[2:3],
		`{"platform":"desktop"}`: all[3:], `{}`: all, `{"capabilities":["display"]}`: nil,
	} {
		holds := holdsOf(t, newWorld(), args)
		for _, id := range all {
			if _, listed := holds[id]; listed != slices.Contains(want, id) {
				t.Errorf("%s: lists %s: %v, want only %q", args, id, listed, want)
			}
		}
	}
}
