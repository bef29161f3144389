package tools

import (
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

func TestGatewayUsage(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "getGatewayUsage", nil)
	if w.account.spent != (backend.UsageQuery{}) || fields["status"] != "ok" || len(fields["refusals"].([]any)) != 0 ||
		fields["totals"].(map[string]any)["microUsd"] != 126800.0 || fields["summary"] != "41 calls cost $0.1268." {
		t.Errorf("requested %+v, got %v", w.account.spent, fields)
	}
	if hidden, there := fields["byModel"]; !there || hidden != nil {
		t.Errorf("hidden: %v", hidden)
	}
	w.record(t, "getGatewayUsage", map[string]any{"range": "24h", "interval": "hour"})
	if w.account.spent != (backend.UsageQuery{Range: "24h", Interval: "hour"}) {
		t.Errorf("requested %+v, want the arguments passed on", w.account.spent)
	}
	for _, args := range []map[string]any{{"range": "1y"}, {"interval": "minute"}} {
		w := newWorld().linked()
		if _, fields := w.record(t, "getGatewayUsage", args); fields["code"] != problem.CodeInvalidRequest ||
			w.account.calls != 0 {
			t.Errorf("%v: %v", args, fields)
		}
	}
}
