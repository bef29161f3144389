package tools

import (
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
		if holds["spending_cap"] != c.cap || holds["paid"] != c.paid || holds["key_alone"] != nil || holds["secrets"] != nil {
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
