package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/proto/backendapi"
)

// printed returns the command's standard output and its remarks.
func printed(u backendapi.GatewayUsage) (string, string) {
	var out, remarks bytes.Buffer
	a := &app{&command.Program{Terminal: term.New(&out, &remarks), Name: "servicectl"}}
	a.showUsage(u)
	return out.String(), remarks.String()
}

func TestUsage_IsAligned(t *testing.T) {
	source, model, why := "own_key", "standard", "no price for text_out"
	sums := backendapi.GatewaySums{Calls: 41, Failed: 2, Cancelled: 1, Refused: 3, MicroUSD: 126_800, TextIn: 9000,
		TextCached: 1000, TextOut: 700}
	u := backendapi.GatewayUsage{
		Project:   "com.example.app",
		Range:     backendapi.GatewayRange{From: "2026-01-01T00:00:00Z", To: "2026-01-07T10:00:00Z"},
		Credit:    backendapi.GatewayCredit{BalanceMicroUSD: 1_873_200, ReservedMicroUSD: 20_000},
		KeySource: &source,
		Caps: backendapi.GatewayCaps{
			Day: &backendapi.GatewayCap{LimitMicroUSD: 500_000, SpentMicroUSD: 126_800,
				ResetsAt: "2026-01-08T00:00:00Z"},
			AccountMonth: &backendapi.GatewayCap{LimitMicroUSD: 5_000_000, ResetsAt: "2026-02-01T00:00:00Z"},

			ProjectKeysDay: &backendapi.GatewayCap{LimitMicroUSD: 500_000, SpentMicroUSD: 1200,
				ResetsAt: "2026-01-08T00:00:00Z"},
		},
		Totals: sums, ByModel: []backendapi.GatewayOfModel{{Model: "standard", GatewaySums: sums}, {Model: "a\x1b[31mb"}},
		Models:   []backendapi.GatewayModel{{ID: "assistant", Resolves: &model, Available: true}},
		Refusals: []backendapi.GatewayRefusal{{Code: "cap_reached", Count: 3, FixHint: "raise the cap"}},
	}
	const want = `project    com.example.app
range      2026-01-01 to 2026-01-07
spent      $0.1268 in 41 calls, 2 failed, 1 cancelled, 3 refused beside them
credit     $1.8732, $0.02 of it reserved by calls in flight
paid by    own key
cap        project, day: $0.1268 of $0.50, resets 2026-01-08
cap        account, month: $0.00 of $5.00, resets 2026-02-01
cap        project keys, day: $0.0012 of $0.50, resets 2026-01-08
assistant  standard

MODEL     CALLS  TOKENS IN  TOKENS OUT  SPENT
standard  41     10000      700         $0.1268
`
	out, remarks := printed(u)
	if !strings.HasPrefix(out, want) || strings.Contains(out, "\x1b") || remarks != "" ||
		!strings.HasSuffix(out, "\nREFUSED      CALLS  NEXT STEP\ncap_reached  3      raise the cap\n") {
		t.Errorf("unexpected output:\n%s%s", out, remarks)
	}

	hidden := backendapi.GatewayUsage{Credit: backendapi.GatewayCredit{BalanceMicroUSD: 1},
		Models: []backendapi.GatewayModel{{ID: "assistant", Why: &why}}}
	if out, _ := printed(hidden); !strings.Contains(out, "assistant  not available: no price for text_out\n") ||
		strings.Contains(out, "paid by") || strings.Contains(out, "MODEL") || strings.Contains(out, "cap ") {
		t.Error(out)
	}
}

func TestUsage_ShowsSoundByClass(t *testing.T) {
	voice := backendapi.GatewaySums{Calls: 3, MicroUSD: 250_000, TextIn: 10, TextCached: 20, TextOut: 30, AudioIn: 400,
		AudioCached: 500, AudioOut: 600}
	text := backendapi.GatewaySums{Calls: 1, TextIn: 7, TextOut: 8}
	out, _ := printed(backendapi.GatewayUsage{Totals: voice,
		ByModel: []backendapi.GatewayOfModel{{Model: "talk", GatewaySums: voice}, {Model: "plain", GatewaySums: text}}})
	const want = `
MODEL  CALLS  TEXT IN  CACHED  TEXT OUT  SOUND IN  CACHED  SOUND OUT  SPENT
talk   3      10       20      30        400       500     600        $0.25
plain  1      7        0       8         0         0       0          $0.00
`
	if !strings.Contains(out, want) {
		t.Errorf("got output %s, want it to contain %s", out, want)
	}
}

func TestUsage_SaysTheNextStep(t *testing.T) {
	const some = 2_000_000
	for want, u := range map[string]backendapi.GatewayUsage{
		"confirm the account's e-mail address": {Credit: backendapi.GatewayCredit{BalanceMicroUSD: some, Locked: true}},
		"add credit": {
			Credit: backendapi.GatewayCredit{BalanceMicroUSD: some, ReservedMicroUSD: some}},
		"ask the backend's operator for models": {Credit: backendapi.GatewayCredit{BalanceMicroUSD: some},
			Models: []backendapi.GatewayModel{{ID: "assistant"}}},
		"choose another model": {Credit: backendapi.GatewayCredit{BalanceMicroUSD: some},
			Models: []backendapi.GatewayModel{{ID: "assistant"}, {ID: "good", Available: true}}},
		"have the app ask the model assistant": {Credit: backendapi.GatewayCredit{BalanceMicroUSD: some},
			Models: []backendapi.GatewayModel{{ID: "assistant", Available: true}}},
	} {
		if _, remarks := printed(u); !strings.HasPrefix(remarks, "  next: "+want) {
			t.Errorf("want next step %q, got %s", want, remarks)
		}
	}
	fine := backendapi.GatewayUsage{Credit: backendapi.GatewayCredit{BalanceMicroUSD: some},
		Totals: backendapi.GatewaySums{Calls: 1}}
	if _, remarks := printed(fine); remarks != "" {
		t.Error(remarks)
	}
}
