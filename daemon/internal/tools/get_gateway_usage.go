package tools

import (
	"context"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

type getGatewayUsage struct {
	records
}

type getGatewayUsageArgs struct {
	recordArgs
	Range    string `json:"range"`
	Interval string `json:"interval"`
}

type gatewayUsageAnswer struct {
	Status string `json:"status"`
	backendapi.GatewayUsage
}

func (t getGatewayUsage) definition() definition {
	return define(Tool{
		Name: "getGatewayUsage", Title: "Read what AI calls cost",
		NeedsAccount: true,
		Annotations:  Annotations{ReadOnly: true, Idempotent: true},
		OutputSchema: gatedAnswersOf[gatewayUsageAnswer]([]string{"ok"},
			on("credit", says("Of the account.")),
			on("credit.topUp", says("Page for adding credit.")),
			on("keySource", says("What pays: credit, own_key, local, script or none.")),
			on("caps.day", says("null: no cap.")),
			onEach(opaque, "caps.month", "caps.accountDay", "caps.accountMonth", "caps.projectKeysDay", "byModel", "bySource"),
			on("byModel", nullable, says("model and the same sums.")),
			on("bySource", nullable, says("source (who paid) and the same sums.")),
			on("totals.refused", says("Not part of any other sum.")),
			on("totals.estimated", says("The provider reported no usage.")),
			on("refusals.fixHint", says("The next step.")),
			on("models.resolves", says("What assistant means.")),
			on("models.why", says("Why it is not available.")),
			recordErrors,
		),
	}, t.run,
		on("range", oneOf(analyticsRanges...), byDefault(analyticsRanges[1])),
		on("interval", oneOf(analyticsIntervals...), says("hour: up to 7d.")),
	)
}

func (t getGatewayUsage) run(ctx context.Context, c call, args getGatewayUsageArgs) (any, error) {
	for _, one := range []struct {
		name, value string
		known       []string
	}{{"range", args.Range, analyticsRanges}, {"interval", args.Interval, analyticsIntervals}} {
		if one.value != "" && !slices.Contains(one.known, one.value) {
			return nil, invalid(one.name+" is not one of "+strings.Join(one.known, ", "), "Pass one of them, or leave it out.")
		}
	}
	read := func(ctx context.Context, target backend.Target, project string) (backendapi.GatewayUsage, error) {
		return t.source.GatewayUsage(ctx, target, project, backend.UsageQuery{Range: args.Range, Interval: args.Interval})
	}
	return onRecord(ctx, t.records, c, recordCall{recordArgs: args.recordArgs}, read,
		func(u backendapi.GatewayUsage) any {
			u.Series, u.Refusals, u.Models = orEmpty(u.Series), orEmpty(u.Refusals), orEmpty(u.Models)
			return gatewayUsageAnswer{"ok", u}
		})
}
